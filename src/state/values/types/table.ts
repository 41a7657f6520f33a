import type { ValueType } from "../value-type.ts";
import { DATE, MAP, OPAQUE, REGEXP, SET, URL_TYPE } from "./built-ins.ts";
import { BYTES } from "./bytes.ts";
import { ERROR } from "./error.ts";
import { SERIALIZABLE } from "./langchain.ts";
import { COMMAND, DELTA_SNAPSHOT, OVERWRITE, SEND } from "./langgraph.ts";
import { isMessage, MESSAGE } from "./message.ts";
import { BIGINT, NUMBER, UNDEFINED } from "./scalars.ts";

/** The first match counts. */
export const SCALAR_TYPES: readonly ValueType[] = [NUMBER, BIGINT as ValueType, UNDEFINED];

/** The first match counts; most instances are messages. */
export const OBJECT_TYPES: readonly ValueType[] = [
  MESSAGE,
  DATE,
  MAP,
  SET,
  BYTES,
  REGEXP,
  URL_TYPE,
  ERROR,
  SEND,
  COMMAND,
  OVERWRITE,
  DELTA_SNAPSHOT,
  SERIALIZABLE,
  OPAQUE,
] as readonly ValueType[];

const RECOGNISED = OBJECT_TYPES.filter((type) => type.is !== undefined && type !== MESSAGE) as Array<
  Required<ValueType>
>;
const BY_LG_NAME: ReadonlyMap<unknown, ValueType> = new Map(
  OBJECT_TYPES.filter(({ lgName }) => lgName !== undefined).map((type) => [type.lgName, type] as const),
);

/** Undefined if the own properties are the whole value. */
export const typeOfObject = (value: object): ValueType | undefined => {
  // The compiler can inline this call, and nearly all instances are messages.
  if (isMessage(value)) return MESSAGE as ValueType;
  const { lg_name: lgName } = value as { lg_name?: unknown };
  if (lgName !== undefined) {
    const type = BY_LG_NAME.get(lgName);
    if (type !== undefined) return type;
  }
  for (const type of RECOGNISED) if (type.is(value)) return type;
  return undefined;
};

export const typeOfScalar = (value: unknown): ValueType =>
  SCALAR_TYPES.find((type) => type.is?.(value)) ?? UNDEFINED;

const BY_NAME: ReadonlyMap<unknown, ValueType> = new Map(
  [...OBJECT_TYPES, ...SCALAR_TYPES].flatMap((type) => type.names.map((name) => [name, type] as const)),
);

/** The name may be anything, since users' data become trees. */
export const typeNamed = (name: unknown): ValueType | undefined => BY_NAME.get(name);
