import { TYPE } from "../type-key.ts";
import type { ValueType } from "../value-type.ts";

/** An invalid date is null. */
export const DATE: ValueType<Date> = {
  names: ["date"],
  is: (value) => value instanceof Date,
  encode: (value) => ({ [TYPE]: "date", value: isoText(value) }),
  revive: (tree) => new Date(tree.value === null ? Number.NaN : (tree.value as string)),
  toWire: (value) => isoText(value),
};

const isoText = (date: Date): string | null => (Number.isNaN(date.getTime()) ? null : date.toISOString());

/** Clients see an object, or an array of pairs if a key is not text. */
export const MAP: ValueType<Map<unknown, unknown>> = {
  names: ["map"],
  is: (value) => value instanceof Map,
  encode: (value, encoder) => ({ [TYPE]: "map", value: encoder.encode([...value]) }),
  revive(tree, reviver) {
    const map = new Map<unknown, unknown>();
    return reviver.fill(map, tree.value, (pairs: Array<[unknown, unknown]>) =>
      pairs.forEach(([key, value]) => map.set(key, value)),
    );
  },
  toWire(value) {
    const pairs = [...value];
    return pairs.every(([key]) => typeof key === "string") ? Object.fromEntries(pairs) : pairs;
  },
};

export const SET: ValueType<Set<unknown>> = {
  names: ["set"],
  is: (value) => value instanceof Set,
  encode: (value, encoder) => ({ [TYPE]: "set", value: encoder.encode([...value]) }),
  revive(tree, reviver) {
    const set = new Set<unknown>();
    return reviver.fill(set, tree.value, (items: unknown[]) => items.forEach((item) => set.add(item)));
  },
  toWire: (value) => [...value],
};

export const REGEXP: ValueType<RegExp> = {
  names: ["regexp"],
  is: (value) => value instanceof RegExp,
  encode: (value) => ({ [TYPE]: "regexp", source: value.source, flags: value.flags }),
  revive: (tree) => new RegExp(tree.source as string, tree.flags as string),
  toWire: (value) => String(value),
};

/** Clients see the result of `toJSON`. */
export const URL_TYPE: ValueType<URL> = {
  names: ["url"],
  is: (value) => value instanceof URL,
  encode: (value) => ({ [TYPE]: "url", value: value.href }),
  revive: (tree) => new URL(tree.value as string),
};

/** Clients see an empty object; only own properties are stored. */
export const OPAQUE: ValueType = {
  names: [],
  is: (value) => value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet,
  toWire: () => ({}),
};
