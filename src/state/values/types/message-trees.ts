/**
 * LangChain's constructor form (`{lc: 1, type: "constructor", id: ["langchain_core", "messages", <class>], kwargs}`)
 * takes 53 characters more, a fifth of a short message. The form is still read; `constructorForm` writes it.
 */

import { setProperty, type Properties } from "../../../platform/lib/properties.ts";
import { TYPE } from "../type-key.ts";

/** The same in every copy of `@langchain/core`. */
export interface MessageLike {
  readonly lc_kwargs?: Properties;
  readonly content: unknown;
  _getType(): string;
}

/** Beside the constructor's arguments. */
export const MESSAGE_PROPERTIES = [
  "name",
  "id",
  "content",
  "additional_kwargs",
  "response_metadata",
  "tool_calls",
  "invalid_tool_calls",
  "tool_call_chunks",
  "usage_metadata",
  "tool_call_id",
  "status",
  "artifact",
  "metadata",
  "role",
] as const;

export const MESSAGE_CLASSES: ReadonlySet<string> = new Set(
  ["AIMessage", "HumanMessage", "SystemMessage", "ToolMessage", "FunctionMessage", "ChatMessage"]
    .flatMap((name) => [name, `${name}Chunk`])
    .concat("RemoveMessage"),
);

const CLASS_BY_TYPE: ReadonlyMap<string, string> = new Map([
  ["ai", "AIMessage"],
  ["human", "HumanMessage"],
  ["system", "SystemMessage"],
  ["tool", "ToolMessage"],
  ["function", "FunctionMessage"],
  ["remove", "RemoveMessage"],
]);

/**
 * LangChain's `toJSON` loses an id that was set after construction. Omits `undefined` and the constructor's defaults, a
 * sixth of a short message.
 */
export const encodeMessage = (message: MessageLike, encode: (value: unknown) => unknown): Properties => {
  const live = message as unknown as Properties;
  const name = messageClassName(message);
  const tree: Properties = { [TYPE]: name };
  const given = message.lc_kwargs ?? {};
  for (const key of Object.keys(given)) {
    if (key === "type" || key === "contentBlocks" || key === "content_blocks") continue; // they repeat the content
    const value = Object.hasOwn(message, key) ? live[key] : given[key];
    if (value === undefined || typeof value === "function" || isMadeAnyway(live, key)) continue;
    if (key === TYPE || key === "lc") return constructorForm(name, message, encode);
    setProperty(tree, key, encode(value));
  }
  for (const key of MESSAGE_PROPERTIES) {
    if (key in tree) continue;
    const value = live[key];
    if (value !== undefined && !isMadeAnyway(live, key)) tree[key] = encode(value);
  }
  return tree;
};

/** For a message that has a property named `lc` or `$type`. */
const constructorForm = (
  name: string,
  message: MessageLike,
  encode: (value: unknown) => unknown,
): Properties => {
  const { [TYPE]: type, lc, ...given } = message.lc_kwargs ?? {};
  const { [TYPE]: _, ...kwargs } = encodeMessage(
    Object.create(message, { lc_kwargs: { value: given } }) as MessageLike,
    encode,
  );
  for (const [key, value] of Object.entries({ [TYPE]: type, lc })) {
    if (value !== undefined) kwargs[key] = encode(value);
  }
  return { lc: 1, type: "constructor", id: ["langchain_core", "messages", name], kwargs };
};

/** Undefined for other trees. Allocates nothing, since it runs per message. */
export const messageNameOf = (tree: Properties): string | undefined => {
  const type = tree[TYPE];
  if (type !== undefined) return MESSAGE_CLASSES.has(type as string) ? (type as string) : undefined;
  if (tree.lc !== 1 || tree.type !== "constructor" || !Array.isArray(tree.id)) return undefined;
  const id = tree.id as unknown[];
  const name = id[id.length - 1];
  return id[1] === "messages" && MESSAGE_CLASSES.has(name as string) ? (name as string) : undefined;
};

/** Undefined for other trees. May be the tree itself, with its `$type`. */
export const messagePropertiesOf = (tree: Properties): Properties | undefined => {
  if (messageNameOf(tree) === undefined) return undefined;
  return tree[TYPE] === undefined ? (tree.kwargs as Properties) : tree;
};

/**
 * An empty property that the constructor makes by default. If there are raw tool calls, the constructor computes tool
 * calls from them, so an empty list must be stored.
 */
export const isMadeAnyway = (live: Properties, key: string): boolean => {
  const value = live[key];
  switch (key) {
    case "additional_kwargs":
    case "response_metadata":
      return typeof value === "object" && value !== null && isPlainEmpty(value);
    case "tool_calls":
    case "invalid_tool_calls":
    case "tool_call_chunks":
      return (
        Array.isArray(value) &&
        value.length === 0 &&
        !Object.hasOwn(Object(live.additional_kwargs), "tool_calls")
      );
    default:
      return false;
  }
};

const isPlainEmpty = (value: object): boolean => {
  for (const _ in value) return false;
  return Object.getPrototypeOf(value) === Object.prototype;
};

/** A user's subclass is stored as the LangChain class that it extends, which can be read everywhere. */
const messageClassName = (message: MessageLike): string => {
  const messageClass = message.constructor as { lc_name?: () => string };
  const name = messageClass.lc_name?.() ?? "";
  if (MESSAGE_CLASSES.has(name)) return name;
  const known = CLASS_BY_TYPE.get(message._getType()) ?? "ChatMessage";
  return "concat" in message && typeof message.concat === "function" ? `${known}Chunk` : known;
};
