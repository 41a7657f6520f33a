import { TYPE } from "../type-key.ts";
import type { ValueType } from "../value-type.ts";

/** Encodes only NaN, the infinities and -0. Clients see null and 0, as `JSON.stringify` writes them. */
export const NUMBER: ValueType = {
  names: ["number"],
  is: (value) => typeof value === "number",
  encode: (value) => ({ [TYPE]: "number", value: Object.is(value, -0) ? "-0" : String(value) }),
  revive: (tree) => Number(tree.value),
};

export const BIGINT: ValueType<bigint> = {
  names: ["bigint"],
  is: (value) => typeof value === "bigint",
  encode: (value) => ({ [TYPE]: "bigint", value: value.toString() }),
  revive: (tree) => BigInt(tree.value as string),
  toWire: (value) => value.toString(),
};

/** Also functions and symbols, which have no stored form. */
export const UNDEFINED: ValueType = {
  names: ["undefined"],
  is: () => true,
  encode: () => ({ [TYPE]: "undefined" }),
  revive: () => undefined,
};
