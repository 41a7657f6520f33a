/**
 * The JSON that clients see: stream events, states, results, webhooks.
 *
 * Most values are plain JSON already, so a value is first looked through without allocating anything; what has no
 * plain form is replaced along its path only, and the native `JSON.stringify` does the rest. (With a replacer
 * function it is five to ten times slower.)
 */

import { Ancestry, CIRCULAR, withoutCycles } from "./cycles.ts";

/** What the messages of LangChain have in common, whichever copy of `@langchain/core` made them. */
interface MessageLike {
  readonly lc_kwargs?: Record<string, unknown>;
  readonly content: unknown;
  _getType(): string;
}

/** Deeper than any real state, shallow enough for every JSON parser that a client may use. */
const NESTING_AT_MOST = 1_000;
/** A cycle passes this depth soon enough; only from here on are the ancestors remembered. See cycles.ts. */
const NESTING_UNSUSPICIOUS = 64;

/** Fields of messages that may have been set after construction, so that `lc_kwargs` doesn't know them. */
const MESSAGE_FIELDS = [
  "name",
  "id",
  "additional_kwargs",
  "response_metadata",
  "tool_calls",
  "invalid_tool_calls",
  "tool_call_chunks",
  "usage_metadata",
  "tool_call_id",
  "status",
  "artifact",
  "role",
] as const;
/** Not sent: `contentBlocks` is `content` once more; the others are LangChain's own bookkeeping. */
const HIDDEN_MESSAGE_FIELDS = new Set(["contentBlocks", "content_blocks", "content", "type"]);

/** True for a LangChain message of any kind, recognised by shape: the user's graph may have its own core. */
export const isMessage = (value: object): value is MessageLike =>
  "_getType" in value &&
  typeof value._getType === "function" &&
  ("lc_serializable" in value || "toDict" in value);

/**
 * One line of strictly valid JSON for any value that a graph may produce. Messages are flat (`{...fields, type,
 * content}`), dates ISO text, sets arrays, maps objects (arrays of pairs if a key is not text), bytes base64,
 * bigints text, errors `{name, message}`; `undefined` is left out, NaN and the infinities are null. A value that
 * has no JSON at all (a function) is null.
 *
 * What contains itself is "[Circular]" where it comes again. Throws a TypeError for a value that is nested deeper than
 * 1,000 levels.
 */
export const toWireJson = (value: unknown): string => JSON.stringify(toWireValue(value)) ?? "null";

/**
 * The same as a value: what `JSON.parse(toWireJson(value))` would be, but for details that `JSON.stringify`
 * settles. Returns the very same reference where nothing had to change, so the result must not be changed.
 */
export const toWireValue = (value: unknown): unknown =>
  typeof value === "object" && value !== null
    ? withoutCycles((ancestry) => plain(value, 0, ancestry))
    : scalar(value);

const scalar = (value: unknown): unknown => (typeof value === "bigint" ? value.toString() : value);

const plain = (value: object, depth: number, ancestry: Ancestry | undefined): unknown => {
  if (ancestry !== undefined || depth > NESTING_UNSUSPICIOUS) {
    ancestry ??= new Ancestry();
    if (!ancestry.enter(value)) return CIRCULAR;
    if (depth > NESTING_AT_MOST) {
      throw new TypeError(
        `The value can't be written as JSON: it is nested deeper than ${NESTING_AT_MOST} levels.`,
      );
    }
  }
  const result = Array.isArray(value)
    ? plainArray(value, depth + 1, ancestry)
    : plainObject(value as Record<string, unknown>, depth + 1, ancestry);
  ancestry?.leave(value);
  return result;
};

const plainArray = (list: unknown[], depth: number, ancestry: Ancestry | undefined): unknown[] => {
  let changed: unknown[] | undefined;
  for (let index = 0; index < list.length; index++) {
    const before = list[index];
    if (typeof before !== "object" || before === null) {
      if (typeof before === "bigint") (changed ??= list.slice())[index] = before.toString();
      continue;
    }
    const after = plain(before, depth, ancestry);
    if (after !== before) (changed ??= list.slice())[index] = after;
  }
  return changed ?? list;
};

const plainObject = (
  value: Record<string, unknown>,
  depth: number,
  ancestry: Ancestry | undefined,
): unknown => {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    const replaced = withoutClass(value);
    if (replaced !== value) {
      return typeof replaced === "object" && replaced !== null
        ? plain(replaced, depth, ancestry)
        : scalar(replaced);
    }
  } else if (typeof value.toJSON === "function") {
    const replaced: unknown = (value.toJSON as () => unknown)();
    if (replaced !== value) {
      return typeof replaced === "object" && replaced !== null
        ? plain(replaced, depth, ancestry)
        : scalar(replaced);
    }
  }
  let changed: Record<string, unknown> | undefined;
  for (const key in value) {
    const before = value[key];
    let after: unknown;
    if (typeof before === "object" && before !== null) after = plain(before, depth, ancestry);
    else if (typeof before === "bigint") after = before.toString();
    else continue;
    if (after === before || !Object.hasOwn(value, key)) continue;
    // A spread keeps an own key named `__proto__` as data; an assignment would make it the prototype.
    changed ??= { ...value };
    if (key === "__proto__") {
      Object.defineProperty(changed, key, {
        value: after,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    } else changed[key] = after;
  }
  return changed ?? value;
};

/** The plain counterpart of an instance of a class; the same reference if it is to be taken field by field. */
const withoutClass = (value: Record<string, unknown>): unknown => {
  if (isMessage(value)) return flatMessage(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Map) return plainMap(value);
  if (value instanceof Set) return [...(value as Set<unknown>)];
  if (ArrayBuffer.isView(value)) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  }
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (value instanceof RegExp) return String(value);
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) return {};
  if (typeof value.toJSON === "function") return (value.toJSON as () => unknown)();
  return value;
};

const plainMap = (map: Map<unknown, unknown>): unknown => {
  const entries = [...map];
  return entries.every(([key]) => typeof key === "string") ? Object.fromEntries(entries) : entries;
};

/**
 * A message as clients know it: `{...fields, type, content}`. Like `{...toDict().data, type}`, which the JavaScript
 * server of LangGraph sends, but seen from the instance, so that a field that was set after construction counts,
 * and without the deep copies that `toDict` makes.
 */
const flatMessage = (message: MessageLike): Record<string, unknown> => {
  const fields = message as unknown as Record<string, unknown>;
  const flat: Record<string, unknown> = { type: message._getType(), content: message.content };
  for (const key of Object.keys(message.lc_kwargs ?? {})) {
    const name = snakeCase(key);
    if (HIDDEN_MESSAGE_FIELDS.has(key) || name === "__proto__") continue;
    // Of its own: asked for `toJSON`, it would give its method, which is then called.
    flat[name] = Object.hasOwn(message, key) ? fields[key] : message.lc_kwargs?.[key];
  }
  for (const key of MESSAGE_FIELDS) {
    const value = fields[key];
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
