import type { AssistantMessage, ContentPart, Message, PartSource, Tool, ToolCall } from "@ag-ui/core";
import { isObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";

/** The objects of a list; none of anything else. */
export const blocksOf = (content: unknown): Record<string, unknown>[] =>
  Array.isArray(content) ? content.filter(isObject) : [];

const textsIn = (list: unknown): string =>
  blocksOf(list)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("");

const TEXT_BLOCKS: ReadonlySet<unknown> = new Set(["text", "output_text", "text_delta"]);

const textOfBlock = (block: unknown): string =>
  isObject(block) && TEXT_BLOCKS.has(block["type"]) && typeof block["text"] === "string" ? block["text"] : "";

/** The text of a LangChain message or chunk, without its other blocks. */
export const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? content.map((block) => (typeof block === "string" ? block : textOfBlock(block))).join("")
      : "";

/** Each provider names the text of a reasoning block differently. */
const reasoningOfBlock = (block: Record<string, unknown>): string => {
  const { type, reasoning, thinking, summary, text, reasoning_content: inner } = block;
  if (type === "thinking") return typeof thinking === "string" ? thinking : "";
  if (type === "reasoning_content")
    return isObject(inner) && typeof inner["text"] === "string" ? inner["text"] : "";
  if (type !== "reasoning") return "";
  if (typeof reasoning === "string") return reasoning;
  return Array.isArray(summary) ? textsIn(summary) : typeof text === "string" ? text : "";
};

/** The reasoning text of a LangChain message or chunk. */
export const reasoningOf = ({ content, additional_kwargs: more }: Record<string, unknown>): string => {
  const inBlocks = blocksOf(content).map(reasoningOfBlock).join("");
  if (inBlocks !== "" || !isObject(more)) return inBlocks;
  if (typeof more["reasoning_content"] === "string") return more["reasoning_content"];
  return isObject(more["reasoning"]) ? textsIn(more["reasoning"]["summary"]) : "";
};

/** A message has one, so that streams and snapshots agree. */
export const reasoningIdOf = (messageId: string): string => `${messageId}:reasoning`;

/** A tool's result as text, because the older dialect knows no other. */
export const resultOf = (content: unknown): string => {
  if (typeof content === "string") return content;
  const blocks = blocksOf(content);
  const isText =
    Array.isArray(content) && blocks.length === content.length && blocks.every(({ type }) => type === "text");
  return isText ? textOf(content) : (JSON.stringify(content) ?? "");
};

const toolCallsOf = (calls: unknown): ToolCall[] =>
  blocksOf(calls).flatMap(({ id, name, args }) =>
    typeof id === "string" && typeof name === "string"
      ? [{ id, type: "function", function: { name, arguments: JSON.stringify(args ?? {}) } }]
      : [],
  );

const DATA_URL = /^data:([^;,]+)(?:;[^;,]+)*;base64,/;

const sourceOfUrl = (url: string): PartSource => {
  const [header, mimeType] = DATA_URL.exec(url) ?? [];
  return header === undefined || mimeType === undefined
    ? { type: "url", value: url }
    : { type: "data", value: url.slice(header.length), mimeType };
};

const sourceOfBlock = (block: Record<string, unknown>): PartSource | undefined => {
  const { url, data, fileId, id } = block;
  const mimeType = block["mimeType"] ?? block["mime_type"];
  const typed = typeof mimeType === "string" ? { mimeType } : {};
  if (typeof url === "string") return { ...sourceOfUrl(url), ...typed };
  if (typeof data === "string")
    return { type: "data", value: data, mimeType: typed.mimeType ?? "application/octet-stream" };
  const file = fileId ?? id;
  return typeof file === "string" ? { type: "file", value: file, ...typed } : undefined;
};

const PART_OF_BLOCK = new Map([
  ["image", "image"],
  ["audio", "audio"],
  ["video", "video"],
  ["file", "document"],
] as const);
const BLOCK_OF_PART = new Map([...PART_OF_BLOCK].map(([block, part]) => [part as string, block]));

const partOf = (block: Record<string, unknown>): ContentPart[] => {
  const { type, text, image_url: image } = block;
  if (type === "text") return typeof text === "string" ? [{ type: "text", text }] : [];
  if (type === "image_url") {
    const url = isObject(image) ? image["url"] : image;
    return typeof url === "string" ? [{ type: "image", source: sourceOfUrl(url) }] : [];
  }
  const kind = PART_OF_BLOCK.get(type as "image");
  const source = kind && sourceOfBlock(block);
  return kind === undefined || source === undefined ? [] : [{ type: kind, source }];
};

const userContent = (content: unknown): string | ContentPart[] =>
  Array.isArray(content) ? blocksOf(content).flatMap(partOf) : textOf(content);

/** By type of a LangChain message, or by role if a graph keeps plain objects. */
const ROLES = new Map<unknown, Message["role"]>(
  Object.entries({
    user: ["human", "HumanMessageChunk", "user"],
    assistant: ["ai", "AIMessageChunk", "assistant", "generic"],
    system: ["system", "SystemMessageChunk"],
    developer: ["developer"],
    tool: ["tool", "ToolMessageChunk"],
  } as const).flatMap(([role, names]) => names.map((name) => [name, role as Message["role"]] as const)),
);

export const roleOf = ({
  type,
  role,
  additional_kwargs: more,
}: Record<string, unknown>): Message["role"] | undefined => {
  const found = ROLES.get(type) ?? ROLES.get(role);
  return found === "system" && isObject(more) && more["__openai_role__"] === "developer"
    ? "developer"
    : found;
};

const assistantMessages = (id: string, message: Record<string, unknown>): Message[] => {
  const reasoning = reasoningOf(message);
  const toolCalls = toolCallsOf(message["tool_calls"]);
  const assistant: AssistantMessage = { id, role: "assistant", content: textOf(message["content"]) };
  return [
    ...(reasoning === "" ? [] : [{ id: reasoningIdOf(id), role: "reasoning" as const, content: reasoning }]),
    toolCalls.length === 0 ? assistant : { ...assistant, toolCalls },
  ];
};

const toAgUi = (message: Record<string, unknown>, place: number): Message[] => {
  const id = typeof message["id"] === "string" ? message["id"] : `message-${place}`;
  const name = typeof message["name"] === "string" ? { name: message["name"] } : {};
  const { content, tool_call_id: toolCallId, status } = message;
  const role = roleOf(message);
  switch (role) {
    case "user":
      return [{ id, role, content: userContent(content), ...name }];
    case "assistant":
      return assistantMessages(id, message);
    case "system":
    case "developer":
      return [{ id, role, content: textOf(content), ...name }];
    case "tool": {
      if (typeof toolCallId !== "string") return [];
      const result = resultOf(content);
      return [{ id, role, content: result, toolCallId, ...(status === "error" ? { error: result } : {}) }];
    }
    default:
      return [];
  }
};

/** The messages of a thread's state. */
export const toAgUiMessages = async (
  messages: readonly JsonValue[],
  slicer: TimeSlicer,
): Promise<Message[]> => {
  const converted: Message[] = [];
  for (const [place, message] of messages.entries()) {
    await slicer.next();
    if (isObject(message)) converted.push(...toAgUi(message, place));
  }
  return converted;
};

const blockOf = (part: ContentPart): JsonObject => {
  if (part.type === "text") return { type: "text", text: part.text };
  const { type, source } = part;
  const { value, mimeType } = source;
  // The block that chat models of all providers know.
  if (type === "image" && source.type !== "file") {
    const url = source.type === "data" ? `data:${source.mimeType};base64,${value}` : value;
    return { type: "image_url", image_url: { url } };
  }
  const place = source.type === "data" ? "data" : source.type === "url" ? "url" : "fileId";
  return {
    type: BLOCK_OF_PART.get(type) ?? "file",
    [place]: value,
    ...(mimeType === undefined ? {} : { mimeType }),
  };
};

const contentOf = (content: string | ContentPart[]): JsonValue =>
  typeof content === "string" ? content : content.map(blockOf);

/** A stream that was cut off leaves half of a call's arguments. */
const callOf = ({ id, function: { name, arguments: text } }: ToolCall): JsonObject[] => {
  try {
    return [{ id, name, args: text === "" ? {} : (JSON.parse(text) as JsonValue), type: "tool_call" }];
  } catch {
    return [];
  }
};

const toLangChain = (message: Message): JsonObject[] => {
  const { id } = message;
  const name = "name" in message && message.name !== undefined ? { name: message.name } : {};
  switch (message.role) {
    case "user":
      return [{ type: "human", id, content: contentOf(message.content), ...name }];
    case "assistant": {
      const calls = (message.toolCalls ?? []).flatMap(callOf);
      return [{ type: "ai", id, content: message.content ?? "", tool_calls: calls, ...name }];
    }
    case "system":
      return [{ type: "system", id, content: message.content, ...name }];
    case "developer": {
      const more = { additional_kwargs: { __openai_role__: "developer" } };
      return [{ type: "system", id, content: message.content, ...more, ...name }];
    }
    case "tool": {
      const { content, toolCallId, error } = message;
      const status = error === undefined ? "success" : "error";
      return [{ type: "tool", id, content: contentOf(content), tool_call_id: toolCallId, status }];
    }
    // The client's own display, and what the thread has in its assistants' messages.
    default:
      return [];
  }
};

export const toLangChainMessages = (messages: readonly Message[]): JsonObject[] =>
  messages.flatMap(toLangChain);

/** The form in which CopilotKit's and LangGraph's packages give tools to graphs. */
export const toolsOf = (tools: readonly Tool[]): JsonObject[] =>
  tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    function: { name, description, parameters: (parameters ?? null) as JsonValue },
  }));
