import type { ValueClasses } from "./classes.ts";
import type { Properties } from "../../platform/lib/properties.ts";

/**
 * A type of values that JSON lacks. types/table.ts lists all; encoding.ts, reviving.ts, comparing.ts and wire-json.ts
 * know types only through that list.
 */
export interface ValueType<Value = unknown> {
  /** The `$type` of its trees; several if classes share this definition. */
  readonly names: readonly string[];
  /** Recognises a value, by shape if users' graphs may have another copy of the library. */
  is?(value: Value): boolean;
  /** Instead of `is`: the value's `lg_name`, by which LangGraph recognises its classes. */
  readonly lgName?: string;
  /** The stored tree. Default: the result of `toJSON`, or else the own properties. */
  encode?(value: Value, encoder: PartEncoder): unknown;
  /** A new value from a stored tree. The tree may be revived again. */
  revive?(tree: Properties, reviver: PartReviver): unknown;
  /**
   * Whether the value still equals its tree. Default: encode the value and compare the trees, which is some times
   * slower.
   */
  equalsTree?(
    value: Value,
    tree: Properties,
    partEqualsTree: (part: unknown, tree: unknown) => boolean,
  ): boolean;
  /**
   * The value for clients; its parts are converted to JSON afterwards. Default: the result of `toJSON`, or else the own
   * properties.
   */
  toWire?(value: Value): unknown;
}

/** Encodes the parts of a value. */
export interface PartEncoder {
  encode(part: unknown): unknown;
  /** The tree of a plain object with trusted keys: no key is taken for `$type`. */
  encodeProperties(object: Properties): Properties;
}

/** Revives the parts of a value. */
export interface PartReviver {
  readonly classes: ValueClasses;
  revive(tree: unknown): unknown;
  /** A new object with all properties of a tree except for one. */
  reviveProperties(tree: Properties, without?: string): Properties;
  /** Fills a collection when all its items are complete: items have no slot that could be replaced later. */
  fill<Target>(target: Target, tree: unknown, fill: (items: never) => void): Target;
  /** For a tree that LangChain loads asynchronously: later puts the instance into the holder. */
  loadLater(tree: unknown, holder: object, key: string | number): void;
}
