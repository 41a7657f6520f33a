import type { Cipher } from "../encryption/cipher.ts";
import type { Queryable } from "./database.ts";

/** PostgreSQL's type, the value, and the value for a database that encrypts, if different. */
export type Parameter<Source> = readonly [
  type: string,
  valueOf: (source: Source) => unknown,
  encryptedOf?: (source: Source, cipher: Cipher) => unknown,
];

/** SQL that is true where `column` is allowed. Adds its parameters to `values`. */
interface Conditioning {
  condition(column: string, values: unknown[]): string;
}
export type ConditionOn<Source> = readonly [column: string, conditioningOf: (source: Source) => Conditioning];

export interface NamedStatement<Source> {
  /** Without conditions: the same for every call, so it is prepared once. */
  readonly text: string;
  query<Row>(queryable: Queryable, source: Source): Promise<Row[]>;
}

type Parameters = Readonly<Record<string, Parameter<never>>>;
type Conditions = Readonly<Record<string, ConditionOn<never>>>;

type SourceOf<Named extends Parameters | Conditions> =
  Named extends Readonly<Record<string, readonly [string, (source: infer Source) => unknown, ...unknown[]]>>
    ? Source
    : never;

const NO_CONDITION = "true";
/** A few kilobytes each. */
const TEXTS_AT_MOST = 50;

/**
 * In `write`, `sql.lists` stands for `$3::bigint[]`. PostgreSQL refuses unused parameters, so a statement declares only
 * its own.
 * `conditions` are usually `true`; others make another text.
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
