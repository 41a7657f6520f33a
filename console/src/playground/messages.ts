/**
 * Messages as the page shows them. What a stream gives are instances of LangChain's classes, what a state gives is their JSON; both
 * have these fields, and of neither is anything certain: a graph may keep anything under `messages`.
 */
export interface ShownMessage {
  id?: string | undefined;
  /** `human`, `ai`, `tool`, `system`, or whatever else there is. */
  type?: unknown;
  /** What JSON of others says instead. */
  role?: unknown;
  name?: unknown;
  content?: unknown;
  tool_calls?: unknown;
  invalid_tool_calls?: unknown;
  tool_call_id?: string;
  status?: unknown;
  artifact?: unknown;
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

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

export const textOf = (content: unknown): string => {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: unknown) => {
      if (typeof block === "string") return block;
      return isObject(block) && block["type"] === "text" && typeof block["text"] === "string"
        ? block["text"]
        : "";
    })
    .join("");
};

const listOf = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? (value as unknown[]).filter(isObject) : [];

const NO_CALLS: readonly ToolCall[] = [];

/** The tools that a message calls, also those whose arguments are no JSON. */
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

/** Asked of every message with every token. */
const callsTools = ({ tool_calls, invalid_tool_calls }: ShownMessage): boolean =>
  (Array.isArray(tool_calls) && tool_calls.length > 0) ||
  (Array.isArray(invalid_tool_calls) && invalid_tool_calls.length > 0);

/** What a list shows: a message, with the answers to the tools it calls. */
export interface Row {
  key: string;
  message: ShownMessage;
  results: readonly ShownMessage[];
}

const NOTHING: readonly ShownMessage[] = [];

const resultsOf = (message: ShownMessage, answers: ReadonlyMap<string, ShownMessage>): ShownMessage[] =>
  toolCallsOf(message).flatMap(({ id }) => (id === undefined ? [] : (answers.get(id) ?? [])));

/** Answers of tools stand with the call that they answer; those to no call stand alone. */
export const rowsOf = (messages: readonly ShownMessage[], before: readonly Row[]): Row[] => {
  const answers = new Map<string, ShownMessage>();
  for (const message of messages)
    if (message.tool_call_id !== undefined) answers.set(message.tool_call_id, message);
  const shown = new Set<ShownMessage>();
  const keys = new Set<string>();
  const rows: Row[] = [];
  messages.forEach((message, index) => {
    if (shown.has(message)) return;
    const results = callsTools(message) ? resultsOf(message, answers) : NOTHING;
    for (const result of results) shown.add(result);
    const id = message.id ?? "";
    const key = id === "" || keys.has(id) ? `${id} at ${index}` : id;
    keys.add(key);
    const last = before[rows.length];
    const isSame =
      last?.key === key &&
      last.message === message &&
      last.results.length === results.length &&
      results.every((result, place) => last.results[place] === result);
    // The same object again, so that what has not changed is not drawn again.
    rows.push(isSame ? last : { key, message, results });
  });
  return rows;
};
