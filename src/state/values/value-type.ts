import type { ValueClasses } from "./classes.ts";
import type { Properties } from "../../platform/lib/properties.ts";

/**
 * A type of values that JSON has no form for, and all that this server has to know of it. types/table.ts lists them;
 * encoding.ts, reviving.ts, comparing.ts and wire-json.ts ask that list, and know no type themselves.
 */
export interface ValueType<Value = unknown> {
  /** What its trees have under `$type`. More than one if several classes share what is said here. */
  readonly names: readonly string[];
  /** Recognises a value. By shape where users' graphs may have a copy of the library of their own. */
  is?(value: Value): boolean;
  /** In the place of `is`: what the value has under `lg_name`, by which LangGraph itself recognises its classes. */
  readonly lgName?: string;
  /** The stored tree. Left out: what `toJSON` gives, or else the value's own properties. */
  encode?(value: Value, encoder: PartEncoder): unknown;
  /** The value of a stored tree, made anew: the tree may be revived again. */
  revive?(tree: Properties, reviver: PartReviver): unknown;
  /**
   * Whether the value still is what its tree says. Left out: the value is encoded and the trees are compared, which
   * takes some times longer.
   */
  equalsTree?(
    value: Value,
    tree: Properties,
    partEqualsTree: (part: unknown, tree: unknown) => boolean,
  ): boolean;
  /**
   * What clients see; its parts are turned into JSON afterwards. Left out: what `toJSON` gives, or else the value's own
   * properties.
   */
  toWire?(value: Value): unknown;
}

/** Encodes what a value is made of. */
export interface PartEncoder {
  encode(part: unknown): unknown;
  /** The tree of a plain object whose keys are not from outside: none of them is taken for `$type`. */
  encodeProperties(object: Properties): Properties;
}

/** Revives what a value is made of. */
export interface PartReviver {
  readonly classes: ValueClasses;
  revive(tree: unknown): unknown;
  /** A new object with all properties of a tree but one. */
  reviveProperties(tree: Properties, without?: string): Properties;
  /** Fills a collection when everything that goes into it is complete: it has no place that could be replaced later. */
  fill<Target>(target: Target, tree: unknown, fill: (items: never) => void): Target;
  /** If a tree is one that LangChain loads asynchronously: puts the loaded instance into its place in the holder. */
  loadLater(tree: unknown, holder: object, key: string | number): void;
}
