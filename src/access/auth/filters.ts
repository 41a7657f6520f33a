import type { Condition } from "../visibility.ts";
import { storableObject } from "../../platform/domain/json-schemas.ts";
import type { WithoutContents } from "../../platform/lib/contents.ts";

/** Far below the limits of PostgreSQL and of the stack. */
const DEPTH_AT_MOST = 8;
const TERMS_AT_MOST = 200;

type Filter =
  /** Metadata contains these keys with these scalar values, or with lists that contain them (`$contains`). */
  | { kind: "has"; values: Record<string, unknown> }
  /** A list or an object: containment alone would also match larger ones. */
  | { kind: "equals"; key: string; value: unknown }
  | { kind: "all" | "any"; of: readonly Filter[] };

/** A handler returned an invalid filter. The error is logged and grants nothing. */
export class FilterError extends Error implements WithoutContents {
  readonly hidesContents = true;
  override readonly name = "FilterError";
}

type Scalar = string | number | boolean | null;
const isScalar = (value: unknown): value is Scalar =>
  value === null ||
  typeof value === "string" ||
  typeof value === "boolean" ||
  (typeof value === "number" && Number.isFinite(value));

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

const isOperators = (value: Record<string, unknown>): boolean =>
  Object.keys(value).some((key) => key.startsWith("$"));

/** `Object.fromEntries` treats `__proto__` like any other key. */
const entry = (key: string, value: unknown): Record<string, unknown> => Object.fromEntries([[key, value]]);

const createReader = () => {
  let terms = 0;

  const equal = (key: string, value: unknown): Filter => {
    // The user may lack this field; omitting the term would match every record.
    if (value === undefined) throw new FilterError(`'${key}' of the filter is undefined`);
    if (isScalar(value)) return { kind: "has", values: entry(key, value) };
    if (isList(value) || (isPlainObject(value) && !isOperators(value))) return { kind: "equals", key, value };
    throw new FilterError(`'${key}' of the filter is compared with no JSON value`);
  };

  const contains = (key: string, value: unknown): Filter => {
    const values = isList(value) ? value : [value];
    if (!values.every(isScalar))
      throw new FilterError(`'$contains' of '${key}' is no text, number, boolean or list of such`);
    return { kind: "has", values: entry(key, values) };
  };

  const term = (key: string, value: unknown): Filter => {
    if (!isPlainObject(value) || !isOperators(value)) return equal(key, value);
    const of = Object.entries(value).map(([operator, operand]) => {
      if (operator === "$eq") return equal(key, operand);
      if (operator === "$contains") return contains(key, operand);
      throw new FilterError(`'${key}' of the filter has '${operator}': there are $eq and $contains`);
    });
    return { kind: "all", of };
  };

  const filter = (value: unknown, depth: number): Filter => {
    if (!isPlainObject(value)) throw new FilterError("the filter is no object");
    if (depth > DEPTH_AT_MOST) throw new FilterError(`the filter is deeper than ${DEPTH_AT_MOST} levels`);
    const of = Object.entries(value).map(([key, inner]): Filter => {
      terms += 1;
      if (terms > TERMS_AT_MOST) throw new FilterError(`the filter has more than ${TERMS_AT_MOST} terms`);
      if (key !== "$or" && key !== "$and") {
        if (key.startsWith("$")) throw new FilterError(`the filter has '${key}': there are $or and $and`);
        return term(key, inner);
      }
      if (!isList(inner)) throw new FilterError(`'${key}' of the filter is no list`);
      return { kind: key === "$or" ? "any" : "all", of: inner.map((one) => filter(one, depth + 1)) };
    });
    return { kind: "all", of };
  };

  return filter;
};

type Parameter = (value: unknown) => string;

/** Uses containment because the index threads_by_metadata supports it. */
const containment = (metadata: string, values: unknown, parameter: Parameter): string =>
  `${metadata} @> ${parameter(JSON.stringify(values))}::jsonb`;

const toSql = (filter: Filter, metadata: string, parameter: Parameter): string => {
  switch (filter.kind) {
    case "has":
      return containment(metadata, filter.values, parameter);
    case "equals": {
      const contained = containment(metadata, entry(filter.key, filter.value), parameter);
      const value = parameter(JSON.stringify(filter.value));
      return `(${contained} and ${metadata} -> ${parameter(filter.key)}::text = ${value}::jsonb)`;
    }
    case "all":
    case "any": {
      if (filter.of.length === 0) return filter.kind === "all" ? "true" : "false";
      const [only, ...others] = filter.of.map((one) => toSql(one, metadata, parameter));
      if (others.length === 0) return only ?? "true";
      return `(${[only, ...others].join(filter.kind === "all" ? " and " : " or ")})`;
    }
  }
};

const namedIn = (value: unknown, keys: ReadonlySet<string>): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    if (!isList(value) && keys.has(key)) return key;
    const found = namedIn(inner, keys);
    if (found !== undefined) return found;
  }
  return undefined;
};

const NO_KEYS: ReadonlySet<string> = new Set();
const ADDRESS_KEYS: ReadonlySet<string> = new Set(["namespace", "key"]);

export interface ReadFilter {
  /** Undefined: matches all records. */
  condition: Condition | undefined;
  /** The filter names `namespace` or `key` of store items. */
  namesAddress: boolean;
}

/**
 * Converts a filter of a handler to a condition on `jsonb`; an empty filter matches everything. Throws `FilterError`
 * with a sentence for the log.
 *
 * Shapes: `{key: value}`, `{key: {$eq: value}}`, `{key: {$contains: value | [values]}}`, `$or` and `$and`.
 */
export const readFilter = (answer: unknown, encryptedKeys: ReadonlySet<string> = NO_KEYS): ReadFilter => {
  const filter = createReader()(answer, 1);
  const storable = storableObject.safeParse(answer);
  if (!storable.success) throw new FilterError(`the filter ${storable.error.issues[0]?.message ?? ""}`);
  const encrypted = encryptedKeys.size === 0 ? undefined : namedIn(answer, encryptedKeys);
  if (encrypted !== undefined) {
    throw new FilterError(
      `the filter has '${encrypted}', whose values LANGGRAPH_AES_JSON_KEYS encrypts: it would find nothing`,
    );
  }
  const namesAddress = namedIn(answer, ADDRESS_KEYS) !== undefined;
  if (filter.kind === "all" && filter.of.length === 0) return { condition: undefined, namesAddress };
  return { condition: (metadata, parameter) => toSql(filter, metadata, parameter), namesAddress };
};

/** True for objects from literals or JSON, of any realm; false for lists and instances of classes. */
export const isPlainObject = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};
