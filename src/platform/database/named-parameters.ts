import type { Cipher } from "../encryption/cipher.ts";
import type { Queryable } from "./database.ts";

/** PostgreSQL's type, the value computed from the source, and, if different, the value for a database that encrypts. */
export type Parameter<Source> = readonly [
  type: string,
  valueOf: (source: Source) => unknown,
  encryptedOf?: (source: Source, cipher: Cipher) => unknown,
];

/** Adds a condition: SQL that is true where `column` is allowed, and its values to `values`. */
interface Conditioning {
  condition(column: string, values: unknown[]): string;
}
/** The column of a condition, and the source of the condition. */
export type ConditionOn<Source> = readonly [column: string, conditioningOf: (source: Source) => Conditioning];

/** A statement with named parameters. */
export interface NamedStatement<Source> {
  /** The text without conditions: the same for every call, so it is prepared once. */
  readonly text: string;
  query<Row>(queryable: Queryable, source: Source): Promise<Row[]>;
}

type Parameters = Readonly<Record<string, Parameter<never>>>;
type Conditions = Readonly<Record<string, ConditionOn<never>>>;

/** The intersection of all sources. */
type SourceOf<Named extends Parameters | Conditions> =
  Named extends Readonly<Record<string, readonly [string, (source: infer Source) => unknown, ...unknown[]]>>
    ? Source
    : never;

const NO_CONDITION = "true";
/** Texts of one statement; a few kilobytes each. */
const TEXTS_AT_MOST = 50;

/**
 * Numbers the parameters in order. `write` makes the text once; in it `sql.lists` stands for `$3::bigint[]`. PostgreSQL
 * refuses a statement with unused parameters, so a statement declares only its own.
 * `conditions` appear in the text by name and are usually `true`. Other conditions make another text.
 */
export const nameParameters = <
  Named extends Parameters,
  Conditional extends Conditions = Record<never, never>,
>(
  parameters: Named,
  write: (sql: Readonly<Record<keyof Named | keyof Conditional, string>>) => string,
  conditions?: Conditional,
): NamedStatement<SourceOf<Named> & SourceOf<Conditional>> => {
  const entries = Object.entries<Parameter<never>>(parameters);
  const numbered = entries.map(([name, [type]], index) => [name, `$${index + 1}::${type}`] as const);
  const conditional = Object.entries<ConditionOn<never>>(conditions ?? {});
  const textWith = (conditions: readonly string[]): string => {
    const named = conditional.map(([name], index) => [name, conditions[index] ?? NO_CONDITION] as const);
    return write(
      Object.fromEntries([...numbered, ...named]) as Record<keyof Named | keyof Conditional, string>,
    );
  };
  const text = textWith([]);
  /** Requests repeat the same few filters, whose values are parameters. */
  const known = new Map<string, string>();
  const knownTextWith = (conditions: readonly string[]): string => {
    if (conditions.every((condition) => condition === NO_CONDITION)) return text;
    const key = conditions.join("\0");
    const found = known.get(key) ?? textWith(conditions);
    if (known.size >= TEXTS_AT_MOST) known.clear();
    known.set(key, found);
    return found;
  };
  return {
    text,
    query: <Row>(queryable: Queryable, source: SourceOf<Named> & SourceOf<Conditional>) => {
      const { cipher } = queryable;
      const values = entries.map(([, [, valueOf, encryptedOf]]) =>
        cipher === undefined || encryptedOf === undefined
          ? valueOf(source as never)
          : encryptedOf(source as never, cipher),
      );
      const conditions = conditional.map(([, [column, conditioningOf]]) =>
        conditioningOf(source as never).condition(column, values),
      );
      return queryable.query<Row>(knownTextWith(conditions), values);
    },
  };
};
