import { ownField } from "../../../platform/lib/names.ts";
import type { ValueClasses } from "../classes.ts";
import type { Properties } from "../../../platform/lib/properties.ts";
import { TYPE } from "../type-key.ts";
import type { PartReviver, ValueType } from "../value-type.ts";
import {
  encodeMessage,
  isMadeAnyway,
  MESSAGE_CLASSES,
  MESSAGE_PROPERTIES,
  messageNameOf,
  messagePropertiesOf,
  type MessageLike,
} from "./message-trees.ts";

/** By shape, because a graph may have its own copy of core. */
export const isMessage = (value: object): value is MessageLike =>
  "_getType" in value &&
  typeof value._getType === "function" &&
  ("lc_serializable" in value || "toDict" in value);

export const MESSAGE: ValueType<MessageLike> = {
  names: [...MESSAGE_CLASSES],
  is: isMessage,
  encode: (message, encoder) => encodeMessage(message, (part) => encoder.encode(part)),
  // Deleting `$type` from a copy made a turn with 2,000 messages take 12 ms instead of 8.
  revive: (tree, reviver) => build(reviver.classes, tree[TYPE], reviver.reviveProperties(tree, TYPE)),
  equalsTree: (message, tree, partEqualsTree) => equalsMessageTree(message, tree, partEqualsTree),
  toWire: (message) => flatMessage(message),
};

export const reviveConstructorForm = (tree: Properties, reviver: PartReviver): unknown => {
  const name = messageNameOf(tree);
  return name === undefined
    ? undefined
    : build(reviver.classes, name, reviver.reviveProperties(tree.kwargs as Properties));
};

const build = ({ messages }: ValueClasses, name: unknown, properties: Properties): unknown => {
  const messageClass = messages.get(name)!;
  if (name !== "AIMessageChunk") return new messageClass(properties);
  // The constructor recomputes tool calls and drops invalid ones. The stored ones count.
  const { tool_calls, invalid_tool_calls, tool_call_chunks } = properties;
  const message = new messageClass(properties) as Properties;
  if (tool_calls !== undefined) message.tool_calls = tool_calls;
  if (invalid_tool_calls !== undefined) message.invalid_tool_calls = invalid_tool_calls;
  if (tool_call_chunks !== undefined) message.tool_call_chunks = tool_call_chunks;
  return message;
};

const equalsMessageTree = (
  message: MessageLike,
  tree: Properties,
  partEqualsTree: (part: unknown, tree: unknown) => boolean,
): boolean => {
  const stored = messagePropertiesOf(tree);
  if (stored === undefined) return false;
  const live = message as unknown as Properties;
  const isFlat = tree === stored;
  for (const key in stored) {
    if (isFlat && key === TYPE) continue;
    const part = Object.hasOwn(live, key) ? live[key] : ownField(message.lc_kwargs, key);
    if (!partEqualsTree(part, stored[key])) return false;
  }
  for (const key of MESSAGE_PROPERTIES) {
    if (live[key] !== undefined && !(key in stored) && !isMadeAnyway(live, key)) return false;
  }
  return true;
};

/** These may be set after construction, so that `lc_kwargs` lacks them. */
const SENT_PROPERTIES = MESSAGE_PROPERTIES.filter((key) => key !== "content" && key !== "metadata");
/** The blocks repeat `content`; `flatMessage` sets `content` and `type` itself. */
const HIDDEN_PROPERTIES = new Set(["contentBlocks", "content_blocks", "content", "type"]);

/**
 * Equals `{...toDict().data, type}` of LangGraph's JavaScript server. Reading the instance includes properties set
 * after construction, and avoids the deep copies of `toDict`.
 */
const flatMessage = (message: MessageLike): Properties => {
  const live = message as unknown as Properties;
  const flat: Properties = { type: message._getType(), content: message.content };
  for (const key of Object.keys(message.lc_kwargs ?? {})) {
    const name = snakeCase(key);
    if (HIDDEN_PROPERTIES.has(key) || name === "__proto__") continue;
    // The instance's `toJSON` is a method, which JSON.stringify would call.
    flat[name] = Object.hasOwn(message, key) ? live[key] : message.lc_kwargs?.[key];
  }
  for (const key of SENT_PROPERTIES) {
    const value = live[key];
    if (value !== undefined) flat[key] = value;
  }
  return flat;
};

const snakeCase = (key: string): string =>
  /[A-Z\s-]/.test(key)
    ? key
        .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
        .replace(/[-_\s]+/g, "_")
        .toLowerCase()
    : key;
