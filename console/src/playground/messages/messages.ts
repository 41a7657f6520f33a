import { isObject } from "../../parts/is-object.ts";
import { contentText } from "../../parts/message-text.ts";

/**
 * A message from a stream (an instance of LangChain's classes) or from a state (its JSON). A graph may store
 * any value under `messages`, so no field is certain.
 */
export interface ShownMessage {
  id?: string | undefined;
  /** `human`, `ai`, `tool`, `system`, or another text. */
  type?: unknown;
  /** Used instead of `type` in other JSON formats. */
  role?: unknown;
  name?: unknown;
  content?: unknown;
  tool_calls?: unknown;
  invalid_tool_calls?: unknown;
  tool_call_id?: string;
  status?: unknown;
  artifact?: unknown;
  usage_metadata?: unknown;
  response_metadata?: unknown;
  additional_kwargs?: Record<string, unknown>;
}

export interface ToolCall {
  id: string | undefined;
  name: string;
  args: unknown;
}

const ROLES: ReadonlyMap<string, string> = new Map([
  ["user", "human"],
  ["assistant", "ai"],
]);

export const typeOf = ({ type, role }: ShownMessage): string => {
  const name = [type, role].find((one) => typeof one === "string") ?? "message";
  return ROLES.get(name) ?? name;
};

const NAMES: ReadonlyMap<string, string> = new Map([
  ["human", "You"],
  ["ai", "Assistant"],
  ["tool", "Tool"],
  ["system", "System"],
]);

export const nameOfType = (type: string): string => NAMES.get(type) ?? type;

/** Types with a LangChain class. A tool message also needs the id of its call. */
const KNOWN_TYPES: ReadonlySet<unknown> = new Set([
  ...["human", "user", "ai", "assistant", "system", "developer", "remove"],
]);

const isKnown = (value: unknown): value is ShownMessage => {
  if (!isObject(value) || Array.isArray(value)) return false;
  const { type, role, tool_call_id: call } = value;
  const kind = type ?? role;
  return KNOWN_TYPES.has(kind) || (kind === "tool" && typeof call === "string");
};

const VALUE_CHARACTERS = 200;

/** `getType` makes the hook take the value for a LangChain message and leave it unchanged. */
const unknownMessage = (value: unknown): ShownMessage => {
  const fields = isObject(value) && !Array.isArray(value) ? value : undefined;
  const shown =
    fields !== undefined && ["content", "type", "role"].some((name) => fields[name] != null)
      ? fields
      : {
          type: "no message",
          content: `This value of the graph is not a message: ${(JSON.stringify(value) ?? "").slice(0, VALUE_CHARACTERS)}`,
        };
  return Object.defineProperty({ ...shown }, "getType", { value: () => "generic" }) as ShownMessage;
};

const NO_MESSAGES: readonly ShownMessage[] = [];

/** Replaces each value that is not a message by a note. */
export const messagesIn = (kept: unknown): readonly ShownMessage[] => {
  if (!Array.isArray(kept)) return NO_MESSAGES;
  const messages: readonly unknown[] = kept;
  return messages.every(isKnown)
    ? messages
    : messages.map((message) => (isKnown(message) ? message : unknownMessage(message)));
};

/**
 * A sentence about the first invalid message, if the schema expects messages. LangChain's own error names
 * neither the message nor its index.
 */
export const faultOfMessages = (input: unknown, schema: unknown): string | undefined => {
  const messages = isObject(input) ? input["messages"] : undefined;
  if (!isObject(schema) || !isObject(schema["items"]) || !Array.isArray(messages)) return undefined;
  const index = messages.findIndex((one) => typeof one !== "string" && !isObject(one));
  return index === -1
    ? undefined
    : `Message ${index + 1} is ${String(messages[index])}. A message is a text, or an object with a role and content.`;
};

const listOf = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? (value as unknown[]).filter(isObject) : [];

const NO_CALLS: readonly ToolCall[] = [];

/** Includes calls whose arguments are not valid JSON. */
export const toolCallsOf = ({ tool_calls, invalid_tool_calls }: ShownMessage): readonly ToolCall[] => {
  const calls = [...listOf(tool_calls), ...listOf(invalid_tool_calls)];
  return calls.length === 0
    ? NO_CALLS
    : calls.map(({ id, name, args }) => ({
        id: typeof id === "string" ? id : undefined,
        name: typeof name === "string" ? name : "?",
        args,
      }));
};

/** Called for every message on every token. */
const callsTools = ({ tool_calls, invalid_tool_calls }: ShownMessage): boolean =>
  (Array.isArray(tool_calls) && tool_calls.length > 0) ||
  (Array.isArray(invalid_tool_calls) && invalid_tool_calls.length > 0);

/** A message with the results of its tool calls. */
export interface Row {
  key: string;
  message: ShownMessage;
  /** Messages that follow, and only call tools. */
  more: readonly ShownMessage[];
  /** Of all calls of the row. */
  results: readonly ShownMessage[];
}

const NOTHING: readonly ShownMessage[] = [];

const resultsOf = (message: ShownMessage, answers: ReadonlyMap<string, ShownMessage>): ShownMessage[] =>
  toolCallsOf(message).flatMap(({ id }) => (id === undefined ? [] : (answers.get(id) ?? [])));

const areSame = (some: readonly ShownMessage[], others: readonly ShownMessage[]): boolean =>
  some.length === others.length && some.every((one, index) => others[index] === one);

const NO_IDS: { has(id: string): boolean } = new Set<string>();

/**
 * A result without a call gets its own row.
 * @param starts the ids of messages that need a row of their own
 */
export const rowsOf = (messages: readonly ShownMessage[], before: readonly Row[], starts = NO_IDS): Row[] => {
  const answers = new Map<string, ShownMessage>();
  for (const message of messages)
    if (message.tool_call_id !== undefined) answers.set(message.tool_call_id, message);
  const shown = new Set<ShownMessage>();
  const keys = new Set<string>();
  const rows: Row[] = [];
  /** Calls tools, and may take the next message in. */
  let open: { row: Row; more: ShownMessage[]; results: ShownMessage[] } | undefined;
  const close = (): void => {
    if (open === undefined) return;
    const { row, more, results } = open;
    open = undefined;
    const last = before[rows.length];
    const isSame =
      last?.key === row.key &&
      last.message === row.message &&
      areSame(last.more, more) &&
      areSame(last.results, results);
    // The same object, so an unchanged row does not render again.
    rows.push(isSame ? last : { ...row, more, results });
  };
  messages.forEach((message, index) => {
    if (shown.has(message)) return;
    const calls = callsTools(message);
    const results = calls ? resultsOf(message, answers) : [];
    for (const result of results) shown.add(result);
    const id = message.id ?? "";
    if (open !== undefined && calls && !starts.has(id) && contentText(message.content).trim() === "") {
      open.more.push(message);
      open.results.push(...results);
      return;
    }
    close();
    const key = id === "" || keys.has(id) ? `${id} at ${index}` : id;
    keys.add(key);
    const row = { key, message, more: NOTHING, results: NOTHING };
    if (calls) {
      open = { row, more: [], results };
      return;
    }
    const last = before[rows.length];
    const isSame =
      last?.key === key && last.message === message && last.more.length === 0 && last.results.length === 0;
    rows.push(isSame ? last : row);
  });
  close();
  return rows;
};

/** Whether a row ends a turn: the next one is of a person, or there is none. */
export const endsTurn = (rows: readonly Row[], index: number): boolean => {
  const next = rows[index + 1];
  return next === undefined || typeOf(next.message) === "human";
};
