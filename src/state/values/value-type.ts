import type { ValueClasses } from "./classes.ts";
import type { Properties } from "../../platform/lib/properties.ts";

/** types/table.ts lists all types. Other files know the types only through that list. */
export interface ValueType<Value = unknown> {
  /** The `$type` of its trees. */
  readonly names: readonly string[];
  /** By shape if users' graphs may have another copy of the library. */
  is?(value: Value): boolean;
  /** Instead of `is`: LangGraph recognises its classes by `lg_name`. */
  readonly lgName?: string;
  /** Default: the result of `toJSON`, or else the own properties. */
  encode?(value: Value, encoder: PartEncoder): unknown;
  /** Returns new objects, because the tree may be revived again. */
  revive?(tree: Properties, reviver: PartReviver): unknown;
  /** Default: encode the value and compare the trees, which is several times slower. */
  equalsTree?(
    value: Value,
    tree: Properties,
    partEqualsTree: (part: unknown, tree: unknown) => boolean,
  ): boolean;
  /** For clients; its parts are converted to JSON afterwards. Default: as for `encode`. */
  toWire?(value: Value): unknown;
}

export interface PartEncoder {
  encode(part: unknown): unknown;
  /** For trusted keys: no key is taken for `$type`. */
  encodeProperties(object: Properties): Properties;
}

export interface PartReviver {
  readonly classes: ValueClasses;
  revive(tree: unknown): unknown;
  reviveProperties(tree: Properties, without?: string): Properties;
  /** Calls `fill` when all items are complete, because items of a collection can't be replaced later. */
  fill<Target>(target: Target, tree: unknown, fill: (items: never) => void): Target;
  /** For a tree that LangChain loads asynchronously. */
  loadLater(tree: unknown, holder: object, key: string | number): void;
}
