import {
  columnOf,
  type ColumnKey,
  type ColumnName,
  type ColumnValue,
  type EncryptedTable,
} from "../encryption/encryption.ts";
import type { Encryption, Queryable } from "./database.ts";

/** SQL texts with values between them. */
export interface Fragment {
  readonly texts: readonly string[];
  readonly values: readonly unknown[];
}

const MARK = "\u0000";

export const NO_CONDITION: Fragment = { texts: ["true"], values: [] };

/** In `write`, `parameter` stands for a value. The text must not depend on a client's input. */
export const fragment = (write: (parameter: (value: unknown) => string) => string): Fragment => {
  const given: unknown[] = [];
  const parts = write((value) => `${MARK}${given.push(value) - 1}${MARK}`).split(MARK);
  return {
    texts: parts.filter((_part, index) => index % 2 === 0),
    // In the order of the text, which may differ from the order of calls.
    values: parts.filter((_part, index) => index % 2 === 1).map((place) => given[Number(place)]),
  };
};

/** The planner estimates a `limit` only from a literal. */
export const literal = (count: number): Fragment => ({ texts: [String(Math.trunc(count))], values: [] });

/** The types of PostgreSQL, and `fragment`. A missing value is `null`. */
interface Types {
  uuid: string;
  text: string;
  boolean: boolean;
  integer: number;
  bigint: number | string;
  float8: number;
  timestamptz: Date | string;
  json: string;
  jsonb: string;
  bytea: Buffer;
  fragment: Fragment;
}
type Type = keyof Types | `${Exclude<keyof Types, "fragment">}[]`;
type ValueOf<T extends Type> = T extends "fragment"
  ? Fragment
  : T extends keyof Types
    ? Types[T] | null | undefined
    : T extends `${infer Item extends keyof Types}[]`
      ? readonly (Types[Item] | null | undefined)[] | null | undefined
      : never;

export type ComputedParameter<Source> = readonly [
  type: Type,
  valueOf: (source: Source) => unknown,
  encryptedOf?: (source: Source, encryption: Encryption) => unknown,
];
/** A value of an encrypted column. Null stays null. */
export const encryptedParameter = <Table extends EncryptedTable, Name extends ColumnName<Table>, Source>(
  table: Table,
  name: Name,
  valueOf: (source: Source) => ColumnValue<Table, Name> | null,
  keyOf: (source: Source) => ColumnKey<Table, Name>,
): ComputedParameter<Source> => {
  const { type, plain } = columnOf(table, name);
  const plainOf = (source: Source): unknown => {
    const value = valueOf(source);
    return value === null ? null : plain!(value);
  };
  return [
    type,
    plain === undefined ? valueOf : plainOf,
    (source: Source, encryption: Encryption) =>
      encryption.stored(table, name, valueOf(source), keyOf(source)),
  ];
};

/** For a type alone, the value is the source's member of that name. */
export type Parameter<Source> = Type | ComputedParameter<Source>;
type Declared = Readonly<Record<string, Parameter<never>>>;

type Computed<Named extends Declared> = {
  [Name in keyof Named as Named[Name] extends Type ? never : Name]: Named[Name];
};
type SourceOf<Named extends Declared> = {
  readonly [Name in keyof Named as Named[Name] extends Type ? Name : never]: ValueOf<Named[Name] & Type>;
} & (Computed<Named> extends Readonly<
  Record<string, readonly [string, (source: infer Source) => unknown, ...unknown[]]>
>
  ? Source
  : never);

/** `text` numbers the values from `$1`. Also a `QueryConfig` of `pg`. */
interface CompiledStatement {
  text: string;
  values: unknown[];
}

type Asked = Pick<Queryable, "query"> & Partial<Pick<Queryable, "encryption">>;

export interface Statement<Source> {
  /** Only for statements without fragments. The values have the order of the declaration. */
  readonly text: string;
  query<Row>(queryable: Asked, source: Source): Promise<Row[]>;
  compile(source: Source, encryption?: Encryption): CompiledStatement;
}

/** A few kilobytes each. */
const TEXTS_AT_MOST = 50;

/**
 * In `write`, `sql.lists` stands for `$3::bigint[]`. PostgreSQL refuses unused parameters, so a statement declares only
 * its own.
 */
export const statement = <const Named extends Declared>(
  parameters: Named,
  write: (sql: Readonly<Record<keyof Named, string>>) => string,
): Statement<SourceOf<Named>> => {
  const all = Object.entries<Parameter<never>>(parameters).map(([name, parameter]) => {
    const [type, valueOf, encryptedOf] = typeof parameter === "string" ? [parameter] : parameter;
    return { name, type, valueOf, encryptedOf };
  });
  const plain = all.filter(({ type }) => type !== "fragment");
  const fragments = all.filter(({ type }) => type === "fragment");
  const numbered = plain.map(({ name, type }, index) => [name, `$${index + 1}::${type}`] as const);
  /** Requests repeat the same few filters, whose values are parameters. */
  const known = new Map<string, string>();
  const textWith = (written: readonly string[]): string => {
    const key = written.join(MARK);
    const found = known.get(key);
    if (found !== undefined) return found;
    const named = fragments.map(({ name }, index) => [name, written[index] ?? ""] as const);
    const text = write(Object.fromEntries([...numbered, ...named]) as Record<keyof Named, string>);
    if (known.size >= TEXTS_AT_MOST) known.clear();
    known.set(key, text);
    return text;
  };
  let constantText: string | undefined;
  /** Uses loops: callbacks would cost two calls for each of a run's hundred parameters. */
  const compile = (source: SourceOf<Named>, encryption?: Encryption): CompiledStatement => {
    const given = source as never;
    const values: unknown[] = [];
    for (const { name, valueOf, encryptedOf } of plain) {
      if (encryptedOf !== undefined && encryption?.isOn === true) values.push(encryptedOf(given, encryption));
      else values.push(valueOf === undefined ? given[name] : valueOf(given));
    }
    const written: string[] = [];
    for (const { name, valueOf } of fragments) {
      const part: Fragment = valueOf === undefined ? given[name] : (valueOf(given) as Fragment);
      let text = part.texts[0]!;
      for (const [index, value] of part.values.entries())
        text += `$${values.push(value)}${part.texts[index + 1]!}`;
      written.push(text);
    }
    const text = fragments.length > 0 ? textWith(written) : (constantText ??= textWith(written));
    return { text, values };
  };
  return {
    get text() {
      return textWith([]);
    },
    compile,
    query: <Row>(queryable: Asked, source: SourceOf<Named>) => {
      const { text, values } = compile(source, queryable.encryption);
      return queryable.query<Row>(text, values);
    },
  };
};

/** The rows of a list, for `from`: the column `place` counts them from 1. */
export interface List {
  rows: string;
  /** Then the statement may wait for locks. Of several rows it must skip locked ones, or it may deadlock. */
  isOne: boolean;
}

type Listed<Source> = Readonly<Record<string, ComputedParameter<Source>>>;

export type ListStatement<Source> = Pick<Statement<readonly Source[]>, "query">;

/**
 * A statement about a list. In `write`, a name of `each` stands for the value of the row whose `place` is in scope, a
 * name of `shared` for a value of the list. One row is sent as plain values, several as arrays: a subscript of an array
 * costs nothing, a column of `unnest` 5 µs.
 */
export const listStatement = <const Each extends Listed<never>, const Shared extends Listed<never>>(
  each: Each,
  shared: Shared,
  write: (sql: Readonly<Record<keyof Each | keyof Shared, string>>, list: List) => string,
): ListStatement<SourceOf<Each>> => {
  type Value = (source: never, encryption: Encryption) => unknown;
  type Sql = Parameters<typeof write>[0];
  const written = (isOne: boolean) => {
    const listed = (value: Value) => (all: readonly never[], encryption: Encryption) =>
      isOne ? value(all[0]!, encryption) : all.map((source) => value(source, encryption));
    const parameters = Object.entries<ComputedParameter<never>>(each).map(
      ([name, [type, plain, encrypted]]) =>
        [name, [isOne ? type : `${type}[]`, listed(plain), encrypted && listed(encrypted)]] as const,
    );
    const names = new Set(isOne ? [] : Object.keys(each));
    return statement(
      { ...Object.fromEntries(parameters), ...shared } as unknown as Listed<never[]>,
      (sql) => {
        const all = Object.entries(sql);
        const values = all.map(([name, value]) => [name, names.has(name) ? `(${value})[place]` : value]);
        const rows = isOne
          ? "(select 1 as place) as list"
          : `unnest(${all[0]![1]}) with ordinality as list (first, place)`;
        return write(Object.fromEntries(values) as Sql, { rows, isOne });
      },
    );
  };
  const [one, several] = [written(true), written(false)];
  return { query: (queryable, all) => (all.length === 1 ? one : several).query(queryable, all as never) };
};
