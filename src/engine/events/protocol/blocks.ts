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

export type BlockEvent =
  | { event: "content-block-start"; index: number; content: Block }
  | { event: "content-block-delta"; index: number; delta: Block; content?: Block }
  | { event: "content-block-finish"; index: number; content: Block };

interface OpenBlock {
  key: string;
  index: number;
  block: Block;
}

const textIn = (value: unknown): string => (typeof value === "string" ? value : "");

const withoutUndefined = (block: Block): Block =>
  Object.fromEntries(Object.entries(block).filter(([, value]) => value != null)) as Block;

const added = (block: Block, slice: Block): Block => {
  // Built from entries, because a model may choose the key `__proto__`.
  const whole = Object.fromEntries([
    ...Object.entries(block),
    ...Object.entries(slice).filter(([, value]) => value != null),
  ]) as Block;
  for (const field of ["text", "reasoning", "data"] as const) {
    if (typeof slice[field] === "string") whole[field] = textIn(block[field]) + slice[field];
  }
  if (isCall(block)) whole["args"] = textIn(block["args"]) + textIn(slice["args"]);
  return whole;
};

/** Fast path: each token is plain text. */
const isText = (slice: Block): slice is Block & { text: string } => {
  if (slice.type !== "text" || typeof slice["text"] !== "string") return false;
  for (const field in slice) if (field !== "type" && field !== "text") return false;
  return true;
};

const isCall = ({ type }: Block): boolean => type === "tool_call_chunk" || type === "server_tool_call_chunk";

const parsedArguments = (text: string): Record<string, unknown> | undefined => {
  if (text === "") return {};
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
};

const finished = (block: Block): Block => {
  if (!isCall(block)) return block;
  const { index: _, type, ...call } = block;
  const text = textIn(block["args"]);
  const args = parsedArguments(text);
  return args === undefined
    ? { ...call, type: "invalid_tool_call", args: text, error: "The arguments are no JSON object." }
    : { ...call, type: type === "tool_call_chunk" ? "tool_call" : "server_tool_call", args };
};

/**
 * JavaScript clients show the content of a start event, Python clients do not, so it is empty. Blocks without
 * deltas come complete in their finish event.
 */
const skeletonOf = (block: Block): Block => {
  const { type, id, name } = block;
  switch (type) {
    case "text":
      return { type, text: "" };
    case "reasoning":
      return { type, reasoning: "" };
    case "tool_call":
    case "invalid_tool_call":
    case "tool_call_chunk":
      return { type: "tool_call_chunk", id: id ?? null, name: name ?? null, args: "" };
    case "server_tool_call":
    case "server_tool_call_chunk":
      return withoutUndefined({ type: "server_tool_call_chunk", id, name, args: "" });
    case "non_standard":
      return { type, value: {} };
    default:
      return withoutUndefined({ ...block, data: undefined, output: undefined, value: undefined });
  }
};

const deltaOf = (slice: Block): Block | undefined => {
  if (slice.type === "text" && slice["text"]) return { type: "text-delta", text: slice["text"] };
  if (slice.type === "reasoning" && slice["reasoning"])
    return { type: "reasoning-delta", reasoning: slice["reasoning"] };
  if (slice.type === "audio" && typeof slice["data"] === "string")
    return { type: "data-delta", data: slice["data"], encoding: "base64" };
  return undefined;
};

const newFields = (slice: Block, known: Block): [string, unknown][] => {
  const before = new Map<string, unknown>(Object.entries(known));
  return Object.entries(slice).filter(
    ([field, value]) =>
      field !== "type" &&
      field !== "index" &&
      field !== "args" &&
      value != null &&
      value !== before.get(field),
  );
};

/** `known`: the block as published before. */
const callDeltas = (slice: Block, known: Block): { delta: Block; content?: Block }[] => {
  const { type, args } = slice;
  const fields = newFields(slice, known);
  return [
    ...(fields.length > 0
      ? [{ delta: { type: "block-delta", fields: { ...Object.fromEntries(fields), type } } }]
      : []),
    // The JavaScript SDK before 1.15 throws at this delta, unless there is a `content` to append.
    ...(typeof args === "string" && args !== ""
      ? [{ delta: { type: "tool-call-delta", args }, content: { type, args } }]
      : []),
  ];
};

const goesOn = ({ type }: Block): boolean =>
  type === "text" || type === "reasoning" || type === "audio" || isCall({ type });

const isWhole = (block: Block): boolean =>
  !isCall(block) || (block["args"] !== "" && parsedArguments(textIn(block["args"])) !== undefined);

/**
 * Each block finishes before the next starts. Providers may interleave pieces of several calls, so pieces of
 * later calls wait until the first call is complete.
 */
export const createBlocks = (publish: (event: BlockEvent) => void) => {
  let open: OpenBlock | undefined;
  let next = 0;
  const held = new Map<string, Block>();

  const finish = (): void => {
    if (open === undefined) return;
    publish({ event: "content-block-finish", index: open.index, content: finished(open.block) });
    open = undefined;
  };
  const publishSlice = (slice: Block, index: number, known: Block): void => {
    if (isCall(slice)) {
      for (const deltas of callDeltas(slice, known))
        publish({ event: "content-block-delta", index, ...deltas });
      return;
    }
    const delta = deltaOf(slice);
    if (delta !== undefined) publish({ event: "content-block-delta", index, delta });
  };
  const start = (key: string, block: Block): void => {
    finish();
    const index = next;
    next += 1;
    const content = skeletonOf(block);
    publish({ event: "content-block-start", index, content });
    open = { key, index, block: added({ type: block.type }, block) };
    publishSlice(block, index, content);
    if (!goesOn(block)) finish();
  };
  const startHeld = (): void => {
    for (const [key, block] of held) {
      if (open !== undefined && !isWhole(open.block)) return;
      held.delete(key);
      start(key, block);
    }
  };

  return {
    add({ key, block }: Slice): void {
      if (open !== undefined && open.block.type === block.type && (open.key === key || key === "tool ")) {
        const known = open.block;
        if (isText(block)) open.block["text"] = textIn(open.block["text"]) + block.text;
        else open.block = added(open.block, block);
        publishSlice(block, open.index, known);
        if (held.size > 0) startHeld();
        return;
      }
      const before = held.get(key);
      if (before !== undefined) held.set(key, added(before, block));
      else if (held.size > 0 || (open !== undefined && !isWhole(open.block)))
        held.set(key, added({ type: block.type }, block));
      else start(key, block);
    },
    end(): void {
      finish();
      for (const [key, block] of held) start(key, block);
      held.clear();
      finish();
    },
  };
};

export type Blocks = ReturnType<typeof createBlocks>;
