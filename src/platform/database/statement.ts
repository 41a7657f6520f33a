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
type Parameters = Readonly<Record<string, Parameter<never>>>;

type Computed<Named extends Parameters> = {
  [Name in keyof Named as Named[Name] extends Type ? never : Name]: Named[Name];
};
type SourceOf<Named extends Parameters> = {
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
export const statement = <const Named extends Parameters>(
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

/** The parameters of one source as arrays, for a statement about several sources. Encodes each value alone. */
export const arraysOf = <Name extends string, Source, All>(
  parameters: Readonly<Record<Name, ComputedParameter<Source>>>,
  sourcesOf: (all: All) => readonly Source[],
): Record<Name, ComputedParameter<All>> =>
  Object.fromEntries(
    Object.entries<ComputedParameter<Source>>(parameters).map(([name, [type, valueOf, encryptedOf]]) => [
      name,
      [
        `${type}[]`,
        (all: All) => sourcesOf(all).map(valueOf),
        encryptedOf &&
          ((all: All, encryption: Encryption) =>
            sourcesOf(all).map((source) => encryptedOf(source, encryption))),
      ],
    ]),
  ) as unknown as Record<Name, ComputedParameter<All>>;
