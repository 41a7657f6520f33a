/**
 * Plain values are not copied; other values become objects with the key `$type` (types/table.ts). Plain objects with a
 * key `$type` or `lc` are wrapped, so that outside data can never name a class.
 */

import { ValueTooLargeError } from "../../platform/domain/errors.ts";
import { Ancestry, CIRCULAR, withoutCycles } from "./cycles.ts";
import { setProperty, type Properties } from "../../platform/lib/properties.ts";
import { TYPE } from "./type-key.ts";
import { typeOfObject, typeOfScalar } from "./types/table.ts";
import type { PartEncoder } from "./value-type.ts";

/** Called for every array. Returns the string that stands for it in the tree, or undefined. */
export type ListHook = (array: readonly unknown[]) => string | undefined;

/** JSON.stringify fails at some 5,000 levels. */
const NESTING_AT_MOST = 1_000;
const NESTING_UNSUSPICIOUS = 64;

/** Half of a text's limit. A value of 500 MB in a heap of 1 GiB ended the process without an error. */
export const CHARACTERS_AT_MOST = 256_000_000;

export const stateTooLarge = (charactersAtMost: number): Error =>
  new ValueTooLargeError("A value of the state", charactersAtMost);

/** Throws a TypeError above 1,000 levels, and a ValueTooLargeError if the texts alone have too many characters. */
export const encode = (value: unknown, listHook?: ListHook, charactersAtMost = CHARACTERS_AT_MOST): unknown =>
  withoutCycles((ancestry) => new Encoder(listHook, ancestry, charactersAtMost).encode(value));

export const treeText = (tree: unknown): string => JSON.stringify(tree);

class Encoder implements PartEncoder {
  private depth = 0;
  /** A lower bound for the JSON. */
  private characters = 0;

  constructor(
    private readonly listHook: ListHook | undefined,
    private readonly fromTheTop: Ancestry | undefined,
    private readonly charactersAtMost: number,
  ) {}

  private readonly fromSomeDepth = new Ancestry();

  encode(value: unknown): unknown {
    switch (typeof value) {
      case "string":
        this.count(value.length);
        return value;
      case "boolean":
        return value;
      case "object":
        return value === null ? null : this.encodeObject(value);
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0) ? value : this.encodeScalar(value);
      default:
        return this.encodeScalar(value);
    }
  }

  private count(characters: number): void {
    this.characters += characters;
    if (this.characters > this.charactersAtMost) throw stateTooLarge(this.charactersAtMost);
  }

  private encodeScalar(value: unknown): unknown {
    return typeOfScalar(value).encode?.(value, this);
  }

  private encodeObject(value: object): unknown {
    this.depth += 1;
    const ancestry = this.fromTheTop ?? (this.depth > NESTING_UNSUSPICIOUS ? this.fromSomeDepth : undefined);
    if (this.depth > NESTING_AT_MOST) {
      throw new TypeError(`The state can't be stored: it is nested deeper than ${NESTING_AT_MOST} levels.`);
    }
    if (ancestry !== undefined && !ancestry.enter(value)) {
      this.depth -= 1;
      return CIRCULAR;
    }
    const tree = Array.isArray(value) ? this.encodeArray(value) : this.encodeAnyObject(value as Properties);
    ancestry?.leave(value);
    this.depth -= 1;
    return tree;
  }

  private encodeArray(array: unknown[]): unknown {
    const list = this.listHook?.(array);
    if (list !== undefined) return list;
    this.count(array.length);
    let changed: unknown[] | undefined;
    for (let index = 0; index < array.length; index++) {
      const tree = this.encode(array[index]);
      if (tree !== array[index]) (changed ??= array.slice())[index] = tree;
    }
    return changed ?? array;
  }

  private encodeAnyObject(value: Properties): unknown {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) {
      const type = typeOfObject(value);
      if (type?.encode !== undefined) return type.encode(value, this);
    }
    if (typeof value.toJSON === "function") return this.encode((value.toJSON as () => unknown)());
    const tree = this.encodeProperties(value);
    const isReserved = Object.hasOwn(value, TYPE) || Object.hasOwn(value, "lc");
    return isReserved ? { [TYPE]: "object", value: tree } : tree;
  }

  encodeProperties(object: Properties): Properties {
    let changed: Properties | undefined;
    for (const key of Object.keys(object)) {
      const before = object[key];
      if (typeof before === "function" || typeof before === "symbol") {
        changed ??= { ...object };
        delete changed[key];
        continue;
      }
      const after = this.encode(before);
      if (after !== before) setProperty((changed ??= { ...object }), key, after);
    }
    return changed ?? object;
  }
}
