/**
 * Whether a value still is what was stored of it: code of the user may have changed a message in place, and then
 * "the same object" is not the same value. Nothing is serialized for the answer; strings that are still the same
 * are compared by reference.
 */

import { ownField } from "../../lib/names.ts";
import { isMessage } from "../../lib/wire-json.ts";
import { encode } from "./encoding.ts";
import { TYPE, type Fields } from "./fields.ts";
import { isMadeAnyway, MESSAGE_FIELDS, messageFieldsOf } from "./messages.ts";

/** Compares at every depth: about 0.3 µs for a message. */
export const resembles = (value: unknown, tree: unknown): boolean => {
  if (typeof value !== "object" || value === null) {
    if (value === tree) return true;
    return typeof tree === "object" && tree !== null && equalTrees(encode(value), tree);
  }
  if (typeof tree !== "object" || tree === null) return false;
  if (Array.isArray(value)) {
    if (!Array.isArray(tree) || value.length !== tree.length) return false;
    for (let index = 0; index < value.length; index++)
      if (!resembles(value[index], tree[index])) return false;
    return true;
  }
  const fields = value as Fields;
  const stored = tree as Fields;
  const prototype: unknown = Object.getPrototypeOf(value);
  if ((prototype === Object.prototype || prototype === null) && typeof fields.toJSON !== "function") {
    const typed = stored[TYPE];
    if (typed !== undefined) return typed === "object" && resemblesFields(fields, stored.value as Fields);
    return resemblesFields(fields, stored);
  }
  if (isMessage(value)) return resemblesMessage(fields, stored);
  return equalTrees(encode(value), tree);
};

/**
 * Compares only what stands at the top: the content, id and name of a message, the fields of an object that are no
 * objects themselves. About 30 ns.
 */
export const resemblesOnTop = (value: unknown, tree: unknown): boolean => {
  if (typeof value !== "object" || value === null) return resembles(value, tree);
  if (typeof tree !== "object" || tree === null) return false;
  if (Array.isArray(value)) return Array.isArray(tree) && value.length === tree.length;
  const fields = value as Fields;
  const stored = messageFieldsOf(tree as Fields);
  if (stored !== undefined) {
    if (fields.id !== stored.id || fields.name !== stored.name) return false;
    const { content } = fields;
    return content === stored.content || (typeof content === "object" && typeof stored.content === "object");
  }
  for (const key in fields) {
    const part = fields[key];
    if (
      (typeof part === "string" || typeof part === "number" || typeof part === "boolean") &&
      part !== (tree as Fields)[key]
    ) {
      return resembles(value, tree); // perhaps a number or a key of a kind that is stored otherwise
    }
  }
  return true;
};

const resemblesFields = (fields: Fields, stored: Fields): boolean => {
  let count = 0;
  for (const key in fields) {
    if (!Object.hasOwn(stored, key) || !resembles(fields[key], stored[key])) return false;
    count += 1;
  }
  return count === Object.keys(stored).length;
};

const resemblesMessage = (message: Fields, tree: Fields): boolean => {
  const stored = messageFieldsOf(tree);
  if (stored === undefined) return false;
  const given = message.lc_kwargs as Fields | undefined;
  const isFlat = tree === stored;
  for (const key in stored) {
    if (isFlat && key === TYPE) continue;
    if (!resembles(Object.hasOwn(message, key) ? message[key] : ownField(given, key), stored[key]))
      return false;
  }
  for (const key of MESSAGE_FIELDS) {
    if (message[key] !== undefined && !(key in stored) && !isMadeAnyway(message, key)) return false;
  }
  return true;
};

const equalTrees = (one: unknown, other: unknown): boolean => {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every(
    (key) => Object.hasOwn(other, key) && equalTrees((one as Fields)[key], (other as Fields)[key]),
  );
};
