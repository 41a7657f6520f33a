import type { Queryable } from "./database.ts";

/** The type in PostgreSQL, and how the value is made of what the statement is given. */
export type Parameter<Source> = readonly [type: string, valueOf: (source: Source) => unknown];

/** A statement whose parameters have names: nobody counts `$n` by hand. */
export interface NamedStatement<Source> {
  /** What PostgreSQL is sent. The same for every call, so it is prepared once. */
  readonly text: string;
  query<Row>(queryable: Queryable, source: Source): Promise<Row[]>;
}

type Parameters = Readonly<Record<string, Parameter<never>>>;

/** All that the values of the parameters are made of. */
type SourceOf<Named extends Parameters> =
  Named extends Readonly<Record<string, readonly [string, (source: infer Source) => unknown]>>
    ? Source
    : never;

/**
 * Numbers the parameters in their order. `write` makes the text, once; in it `sql.lists` stands for `$3::bigint[]`.
 * PostgreSQL refuses a statement that leaves one of its parameters out, so each statement names only its own.
 */
export const nameParameters = <Named extends Parameters>(
  parameters: Named,
  write: (sql: Readonly<Record<keyof Named, string>>) => string,
): NamedStatement<SourceOf<Named>> => {
  const entries = Object.entries<Parameter<never>>(parameters);
  const numbered = entries.map(([name, [type]], index) => [name, `$${index + 1}::${type}`] as const);
  const text = write(Object.fromEntries(numbered) as Record<keyof Named, string>);
  const values = entries.map(([, [, valueOf]]) => valueOf);
  return {
    text,
    query: <Row>(queryable: Queryable, source: SourceOf<Named>) =>
      queryable.query<Row>(
        text,
        values.map((valueOf) => valueOf(source as never)),
      ),
  };
};
