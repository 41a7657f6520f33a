export interface Block {
  type: string;
  [field: string]: unknown;
}

/** A part of a block; slices with the same key belong to one block. */
export interface Slice {
  key: string;
  block: Block;
}

/** Structural, because the graph may have its own copy of LangChain. */
export interface StreamedMessage {
  id?: string;
  content?: unknown;
  contentBlocks?: unknown;
  tool_calls?: unknown;
  invalid_tool_calls?: unknown;
  tool_call_chunks?: unknown;
  additional_kwargs?: Record<string, unknown>;
  response_metadata?: Record<string, unknown>;
  usage_metadata?: Record<string, unknown>;
  concat?: unknown;
}

export const isChunk = (message: StreamedMessage): boolean => typeof message.concat === "function";

/** Skipped, because LangChain has normalized fields for tool calls. */
const TOOL_CALLS = new Set([
  "tool_call",
  "tool_call_chunk",
  "invalid_tool_call",
  "tool_use",
  "input_json_delta",
  "function_call",
]);
const NO_CONTENT = new Set(["tool_calls", "function_call"]);

const listOf = (value: unknown): Block[] =>
  Array.isArray(value) ? value.filter((block) => typeof block === "object" && block !== null) : [];

const keyOf = ({ type, index }: Block): string => (index == null ? type : `${type} ${String(index)}`);

const hasMoreContent = ({ additional_kwargs }: StreamedMessage): boolean => {
  for (const key in additional_kwargs) if (!NO_CONTENT.has(key)) return true;
  return false;
};

const hasSome = (list: unknown): boolean => Array.isArray(list) && list.length > 0;

const contentBlocks = (message: StreamedMessage): Block[] => {
  const { content } = message;
  if (typeof content === "string" && !hasMoreContent(message)) return [{ type: "text", text: content }];
  let blocks: unknown;
  try {
    blocks = message.contentBlocks;
  } catch {
    // Blocks that LangChain can't translate are sent unchanged.
    blocks = undefined;
  }
  if (blocks === undefined && typeof content === "string") return [{ type: "text", text: content }];
  return listOf(blocks ?? content).filter(({ type }) => typeof type === "string" && !TOOL_CALLS.has(type));
};

const isEmpty = ({ type, ...block }: Block): boolean => type === "text" && block["text"] === "";

const toolSlices = (message: StreamedMessage): Slice[] => {
  if (isChunk(message)) {
    const chunks = listOf(message.tool_call_chunks);
    // A model that does not stream its tool calls sends them complete in its chunk.
    if (chunks.length > 0) {
      return chunks.map((chunk) => ({
        key: `tool ${String(chunk["index"] ?? chunk["id"] ?? "")}`,
        block: { ...chunk, type: "tool_call_chunk" },
      }));
    }
  }
  return [
    ...listOf(message.tool_calls).map((call) => ({ ...call, type: "tool_call" })),
    ...listOf(message.invalid_tool_calls).map((call) => ({ ...call, type: "invalid_tool_call" })),
  ].map((block: Block, place) => ({ key: `call ${String(block["id"] ?? place)}`, block }));
};

export const slicesOf = (message: StreamedMessage): Slice[] => {
  const slices: Slice[] = [];
  for (const block of contentBlocks(message)) if (!isEmpty(block)) slices.push({ key: keyOf(block), block });
  if (hasSome(message.tool_call_chunks) || hasSome(message.tool_calls) || hasSome(message.invalid_tool_calls))
    slices.push(...toolSlices(message));
  return slices;
};
