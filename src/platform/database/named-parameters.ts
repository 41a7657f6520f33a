import type { Cipher } from "../encryption/cipher.ts";
import type { Queryable } from "./database.ts";

/**
 * The type in PostgreSQL, how the value is made of what the statement is given, and how it is made where the database seals
 * what is stored, if that is another.
 */
export type Parameter<Source> = readonly [
  type: string,
  valueOf: (source: Source) => unknown,
  encryptedOf?: (source: Source, cipher: Cipher) => unknown,
];

/** What adds a condition to a statement: SQL that is true where `column` allows it, and its values to `values`. */
interface Conditioning {
  condition(column: string, values: unknown[]): string;
}
/** The column that a condition is about, and what makes the condition. */
export type ConditionOn<Source> = readonly [column: string, conditioningOf: (source: Source) => Conditioning];

/** A statement whose parameters have names: nobody counts `$n` by hand. */
export interface NamedStatement<Source> {
  /** What PostgreSQL is sent, if no condition says anything. The same for every call, so it is prepared once. */
  readonly text: string;
  query<Row>(queryable: Queryable, source: Source): Promise<Row[]>;
}

type Parameters = Readonly<Record<string, Parameter<never>>>;
type Conditions = Readonly<Record<string, ConditionOn<never>>>;

/** All that the values of the parameters are made of. */
type SourceOf<Named extends Parameters | Conditions> =
  Named extends Readonly<Record<string, readonly [string, (source: infer Source) => unknown, ...unknown[]]>>
    ? Source
    : never;

const NO_CONDITION = "true";
/** Of one statement; a few kilobytes each. */
const TEXTS_AT_MOST = 50;

/**
 * Numbers the parameters in their order. `write` makes the text, once; in it `sql.lists` stands for `$3::bigint[]`.
 * PostgreSQL refuses a statement that leaves one of its parameters out, so each statement names only its own.
 *
 * `conditions` stand in the text by their names, too. Each is `true` in the usual text; only for a source that has more to
 * say is the text made anew.
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
  /** The same few filters with each request: their values are parameters. */
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
