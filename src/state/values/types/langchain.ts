/**
 * Classes of LangChain other than messages, in the constructor form that LangChain itself writes: `{lc: 1, type:
 * "constructor", id, kwargs}`. It has no `$type`, so reviving.ts knows this form itself; LangChain's own `load` builds
 * the instance.
 */

import { setProperty, type Properties } from "../../../platform/lib/properties.ts";
import type { PartEncoder, ValueType } from "../value-type.ts";
import { messageNameOf } from "./message-trees.ts";

export const SERIALIZABLE: ValueType<Properties> = {
  names: [],
  is: (value) => value.lc_serializable === true && typeof value.toJSON === "function",
  encode: (value, encoder) => encodeInstances((value.toJSON as () => unknown)(), encoder),
};

/** Encodes what LangChain's own `toJSON` left: it writes all but the instances inside. */
const encodeInstances = (tree: unknown, encoder: PartEncoder): unknown => {
  if (typeof tree !== "object" || tree === null) return tree;
  if (Array.isArray(tree)) return tree.map((item) => encodeInstances(item, encoder));
  if (typeof (tree as Properties).toJSON === "function") return encoder.encode(tree);
  const copy: Properties = {};
  for (const [key, value] of Object.entries(tree)) {
    // JSON leaves it out, too; a tree that has it would never equal what was stored.
    if (value !== undefined) setProperty(copy, key, encodeInstances(value, encoder));
  }
  return copy;
};

/** True for the constructor form of a class of LangChain that is not a message. */
export const isSerialized = (tree: unknown): boolean =>
  typeof tree === "object" &&
  tree !== null &&
  "lc" in tree &&
  tree.lc === 1 &&
  messageNameOf(tree as Properties) === undefined;
