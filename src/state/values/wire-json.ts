/**
 * Most values are plain JSON, so a value is first scanned without allocation. A replacer function is five to ten times
 * slower.
 */

import { ValueTooLargeError } from "../../platform/domain/errors.ts";
import { Ancestry, CIRCULAR, withoutCycles } from "./cycles.ts";
import { CHARACTERS_AT_MOST } from "./encoding.ts";
import { setProperty, type Properties } from "../../platform/lib/properties.ts";
import { typeOfObject, typeOfScalar } from "./types/table.ts";

/** Shallow enough for clients' JSON parsers. */
const NESTING_AT_MOST = 1_000;
/** Ancestors are remembered only beyond this depth. See cycles.ts. */
const NESTING_UNSUSPICIOUS = 64;

/**
 * Messages are flat (`{...fields, type, content}`), dates ISO text, sets arrays, maps objects (or arrays of pairs),
 * bytes base64, bigints text, errors `{name, message}`. `undefined` is omitted; NaN, the infinities and functions are
 * null; a cycle is "[Circular]".
 * @throws TypeError above 1,000 levels, ValueTooLargeError for too many characters
 */
export const toWireJson = (value: unknown): string => JSON.stringify(toWireValue(value)) ?? "null";

/** Returns the same reference if nothing changes, so callers must not change the result. */
export const toWireValue = (value: unknown): unknown =>
  typeof value === "object" && value !== null
    ? withoutCycles((ancestry) => plain(value, 0, ancestry, { characters: 0 }))
    : scalar(value);

/** `JSON.stringify` writes all scalars but bigints. */
const scalar = (value: unknown): unknown =>
  typeof value === "bigint" ? typeOfScalar(value).toWire?.(value) : value;

/** A lower bound for the JSON. */
interface Size {
  characters: number;
}

const grow = (size: Size, characters: number): void => {
  size.characters += characters;
  if (size.characters > CHARACTERS_AT_MOST) throw new ValueTooLargeError("A value", CHARACTERS_AT_MOST);
};

const plain = (value: object, depth: number, ancestry: Ancestry | undefined, size: Size): unknown => {
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
    ? plainArray(value, depth + 1, ancestry, size)
    : plainObject(value as Properties, depth + 1, ancestry, size);
  ancestry?.leave(value);
  return result;
};

const plainArray = (
  list: unknown[],
  depth: number,
  ancestry: Ancestry | undefined,
  size: Size,
): unknown[] => {
  grow(size, list.length);
  let changed: unknown[] | undefined;
  for (let index = 0; index < list.length; index++) {
    const before = list[index];
    if (typeof before !== "object" || before === null) {
      if (typeof before === "string") grow(size, before.length);
      else if (typeof before === "bigint") (changed ??= list.slice())[index] = scalar(before);
      continue;
    }
    const after = plain(before, depth, ancestry, size);
    if (after !== before) (changed ??= list.slice())[index] = after;
  }
  return changed ?? list;
};

const plainObject = (
  value: Properties,
  depth: number,
  ancestry: Ancestry | undefined,
  size: Size,
): unknown => {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    const replaced = withoutClass(value);
    if (replaced !== value) {
      return typeof replaced === "object" && replaced !== null
        ? plain(replaced, depth, ancestry, size)
        : scalar(replaced);
    }
  } else if (typeof value.toJSON === "function") {
    const replaced: unknown = (value.toJSON as () => unknown)();
    if (replaced !== value) {
      return typeof replaced === "object" && replaced !== null
        ? plain(replaced, depth, ancestry, size)
        : scalar(replaced);
    }
  }
  let changed: Properties | undefined;
  for (const key in value) {
    const before = value[key];
    let after: unknown;
    if (typeof before === "object" && before !== null) after = plain(before, depth, ancestry, size);
    else if (typeof before === "bigint") after = scalar(before);
    else {
      if (typeof before === "string") grow(size, before.length);
      continue;
    }
    if (after === before || !Object.hasOwn(value, key)) continue;
    // A spread keeps an own key named `__proto__` as data.
    setProperty((changed ??= { ...value }), key, after);
  }
  return changed ?? value;
};

/** Returns `value` itself if its properties must be converted one by one. */
const withoutClass = (value: Properties): unknown => {
  const type = typeOfObject(value);
  if (type?.toWire !== undefined) return type.toWire(value);
  return typeof value.toJSON === "function" ? (value.toJSON as () => unknown)() : value;
};
