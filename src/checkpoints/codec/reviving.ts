/**
 * From a stored tree back to the value. The tree is never handed out and never changed: it may be remembered and
 * revived again, each time into objects of its own.
 */

import { load } from "@langchain/core/load";
import * as messages from "@langchain/core/messages";
import { Command, Overwrite, Send } from "@langchain/langgraph";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { setField, TYPE, type Fields } from "./fields.ts";
import { MESSAGE_CLASSES, messageNameOf } from "./messages.ts";

/** Gives the elements of a list that stands elsewhere, revived. */
export type ListResolver = (list: number) => unknown[];

/**
 * Classes of LangChain other than messages can only be built asynchronously. `revive` leaves their stored form in
 * place and notes here how to replace it; `settle` does so.
 */
export type Unfinished = Array<() => Promise<void>>;

const noList: ListResolver = () => {
  throw new Error("A stored value refers to a list where none can be.");
};

/**
 * The value of a tree. Only the closed set of types below and the classes that LangChain's own `load` allows are
 * ever built; a record that names anything else stays plain data.
 */
export const revive = (tree: unknown, unfinished?: Unfinished, list: ListResolver = noList): unknown => {
  if (typeof tree !== "object" || tree === null) return tree;
  if (Array.isArray(tree)) {
    const array = new Array<unknown>(tree.length);
    for (let index = 0; index < tree.length; index++) {
      array[index] = revive(tree[index], unfinished, list);
      if (unfinished !== undefined && isSerialized(tree[index])) {
        loadLater(tree[index] as Fields, array, index, unfinished);
      }
    }
    return array;
  }
  const fields = tree as Fields;
  if (fields.lc !== undefined) return reviveSerialized(fields, unfinished, list);
  const type = fields[TYPE];
  if (type !== undefined) {
    const messageClass = CLASSES.get(type);
    if (messageClass === undefined) return reviveTyped(fields, unfinished, list);
    // Not by reviveTyped, and without deleting a field: with both a turn of a thread of 2,000 messages took 12 ms, not 8.
    return buildMessage(messageClass, reviveFields(fields, unfinished, list, TYPE));
  }
  return reviveFields(fields, unfinished, list);
};

/** Revives completely. */
export const reviveFully = async (tree: unknown, list?: ListResolver): Promise<unknown> => {
  const unfinished: Unfinished = [];
  const holder = revive([tree], unfinished, list) as [unknown];
  await settle(unfinished);
  return holder[0];
};

export const settle = async (unfinished: Unfinished): Promise<void> => {
  if (unfinished.length > 0) await Promise.all(unfinished.map((finish) => finish()));
};

const reviveFields = (
  tree: Fields,
  unfinished: Unfinished | undefined,
  list: ListResolver,
  without?: string,
): Fields => {
  const fields: Fields = {};
  for (const key in tree) {
    if (key === without) continue;
    const part = tree[key];
    if (key === "__proto__") setField(fields, key, revive(part, unfinished, list));
    else fields[key] = typeof part === "object" && part !== null ? revive(part, unfinished, list) : part;
    if (unfinished !== undefined && isSerialized(part)) loadLater(part as Fields, fields, key, unfinished);
  }
  return fields;
};

/** True for the constructor form of a class of LangChain that is not a message. */
const isSerialized = (tree: unknown): boolean =>
  typeof tree === "object" &&
  tree !== null &&
  "lc" in tree &&
  tree.lc === 1 &&
  messageNameOf(tree as Fields) === undefined;

type MessageClass = new (fields: Fields) => object;

const CLASSES: ReadonlyMap<unknown, MessageClass> = new Map(
  [...MESSAGE_CLASSES].map((name) => [name, (messages as unknown as Record<string, MessageClass>)[name]!]),
);

const reviveSerialized = (tree: Fields, unfinished: Unfinished | undefined, list: ListResolver): unknown => {
  const messageClass = CLASSES.get(messageNameOf(tree));
  if (messageClass === undefined) return structuredClone(tree);
  return buildMessage(messageClass, reviveFields(tree.kwargs as Fields, unfinished, list));
};

const buildMessage = (messageClass: MessageClass, kwargs: Fields): unknown => {
  if (messageClass !== messages.AIMessageChunk) return new messageClass(kwargs);
  // Its constructor computes tool calls anew, and drops invalid ones: what was stored counts.
  const { tool_calls, invalid_tool_calls, tool_call_chunks } = kwargs;
  const message = new messageClass(kwargs) as Fields;
  if (tool_calls !== undefined) message.tool_calls = tool_calls;
  if (invalid_tool_calls !== undefined) message.invalid_tool_calls = invalid_tool_calls;
  if (tool_call_chunks !== undefined) message.tool_call_chunks = tool_call_chunks;
  return message;
};

const loadLater = (tree: Fields, holder: unknown, key: string | number, unfinished: Unfinished): void => {
  unfinished.push(async () => {
    try {
      setField(holder as Fields, String(key), await load(JSON.stringify(tree)));
    } catch {
      // A class that LangChain doesn't allow or know: it stays the record that it was.
    }
  });
};

/** Only these: a name in stored data never reaches anything else that is global. */
const BYTE_CLASSES = new Map<unknown, (bytes: Buffer) => unknown>([
  ["Buffer", (bytes) => bytes],
  ["ArrayBuffer", (bytes) => new Uint8Array(bytes).buffer],
]);
const VIEWS: Array<new (buffer: ArrayBuffer) => ArrayBufferView> = [
  Int8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
];
for (const view of VIEWS) BYTE_CLASSES.set(view.name, (bytes) => new view(new Uint8Array(bytes).buffer));

const ERROR_CLASSES = new Map(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((type) => [
    type.name,
    type,
  ]),
);

const reviveTyped = (tree: Fields, unfinished: Unfinished | undefined, list: ListResolver): unknown => {
  const inner = (part: unknown): unknown => revive(part, unfinished, list);
  // A map has no place that could be filled in later, so it is filled when all that goes into it is finished.
  const filled = <Items extends unknown[], Target>(target: Target, fill: (items: Items) => void): Target => {
    const before: Unfinished = [];
    const items = revive(tree.value, unfinished && before, list) as Items;
    if (before.length === 0) fill(items);
    else unfinished?.push(async () => (await settle(before), fill(items)));
    return target;
  };
  // The field of an instance may itself be what is loaded later.
  const withLater = <Target extends object>(target: Target, field: string, part: unknown): Target => {
    if (unfinished !== undefined && isSerialized(part)) loadLater(part as Fields, target, field, unfinished);
    return target;
  };
  switch (tree[TYPE]) {
    case "list":
      return list(tree.list as number);
    case "undefined":
      return undefined;
    case "number":
      return Number(tree.value);
    case "bigint":
      return BigInt(tree.value as string);
    case "object":
      return reviveFields(tree.value as Fields, unfinished, list);
    case "date":
      return new Date(tree.value === null ? Number.NaN : (tree.value as string));
    case "map": {
      const map = new Map<unknown, unknown>();
      return filled(map, (pairs: Array<[unknown, unknown]>) =>
        pairs.forEach(([key, value]) => map.set(key, value)),
      );
    }
    case "set": {
      const set = new Set<unknown>();
      return filled(set, (items: unknown[]) => items.forEach((item) => set.add(item)));
    }
    case "bytes": {
      const bytes = Buffer.from(tree.value as string, "base64");
      return BYTE_CLASSES.get(tree.of)?.(bytes) ?? new Uint8Array(bytes);
    }
    case "regexp":
      return new RegExp(tree.source as string, tree.flags as string);
    case "url":
      return new URL(tree.value as string);
    case "error":
      return reviveError(tree, inner);
    case "send": {
      const { node, args, timeout } = tree;
      const send = new Send(node as string, {});
      send.args = inner(args) as typeof send.args;
      if (timeout !== undefined) send.timeout = inner(timeout) as typeof send.timeout;
      return withLater(send, "args", args);
    }
    case "command": {
      const parts = tree.value as Fields;
      const command = new Command(inner(parts) as ConstructorParameters<typeof Command>[0]);
      for (const key of ["update", "resume"] as const) withLater(command, key, parts[key]);
      return command;
    }
    case "overwrite":
      return withLater(new Overwrite(inner(tree.value)), "__overwrite__", tree.value);
    case "delta_snapshot":
      return withLater(new DeltaSnapshot(inner(tree.value)), "value", tree.value);
    default:
      return reviveFields(tree, unfinished, list);
  }
};

const reviveError = (tree: Fields, inner: (part: unknown) => unknown): Error => {
  const name = tree.name as string;
  const errorClass = ERROR_CLASSES.get(name) ?? Error;
  const error = new errorClass(
    tree.message as string,
    tree.cause === undefined ? undefined : { cause: inner(tree.cause) },
  );
  if (error.name !== name) error.name = name;
  for (const [key, value] of Object.entries((tree.fields as Fields | undefined) ?? {})) {
    setField(error as unknown as Fields, key, inner(value));
  }
  // A stack would say where the error was read, not where it happened.
  error.stack = `${name}: ${error.message}`;
  return error;
};
