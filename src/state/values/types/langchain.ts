/**
 * LangChain classes other than messages, in LangChain's constructor form. The form has no `$type`, so reviving.ts
 * handles it; LangChain's `load` builds the instance.
 */

import { setProperty, type Properties } from "../../../platform/lib/properties.ts";
import type { PartEncoder, ValueType } from "../value-type.ts";
import { messageNameOf } from "./message-trees.ts";

export const SERIALIZABLE: ValueType<Properties> = {
  names: [],
  is: (value) => value.lc_serializable === true && typeof value.toJSON === "function",
  encode: (value, encoder) => encodeInstances((value.toJSON as () => unknown)(), encoder),
};

/** LangChain's own `toJSON` leaves instances inside. */
const encodeInstances = (tree: unknown, encoder: PartEncoder): unknown => {
  if (typeof tree !== "object" || tree === null) return tree;
  if (Array.isArray(tree)) return tree.map((item) => encodeInstances(item, encoder));
  if (typeof (tree as Properties).toJSON === "function") return encoder.encode(tree);
  const copy: Properties = {};
  for (const [key, value] of Object.entries(tree)) {
    // JSON omits undefined, and a tree with it would never equal the stored one.
    if (value !== undefined) setProperty(copy, key, encodeInstances(value, encoder));
  }
  return copy;
};

export const isSerialized = (tree: unknown): boolean =>
  typeof tree === "object" &&
  tree !== null &&
  "lc" in tree &&
  tree.lc === 1 &&
  messageNameOf(tree as Properties) === undefined;
