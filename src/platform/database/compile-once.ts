import { sql, type Compilable, type CompiledQuery, type RawBuilder } from "kysely";
import type { Queryable } from "./database.ts";

type ValuesOf = Readonly<Record<string, (source: never) => unknown>>;
type SourceOf<Values extends ValuesOf> =
  Values extends Readonly<Record<string, (source: infer Source) => unknown>> ? Source : never;
/** What stands in a query for the values: each is sent as a parameter. */
type Given<Values extends ValuesOf> = {
  readonly [Name in keyof Values]: RawBuilder<ReturnType<Values[Name]>>;
};

/** Stands among the parameters of a compiled query for a value that is given when the query is sent. */
class Later {
  constructor(readonly valueOf: (source: never) => unknown) {}
}

/**
 * A query of Kysely that is built and compiled once, and then sent like a raw statement: to do so each time takes 20 to 100
 * microseconds, as long as all else that this process does for the query. For what is asked often.
 *
 * `values`: its parameters, by their names, and how each is made of what the query is sent with. `write` builds it; where
 * the visibility hides something its condition is part of the text, and the query is built anew.
 */
export const compileOnce = <Hiding extends { readonly hidesNothing: boolean }, Values extends ValuesOf, Row>(
  values: Values,
  write: (given: Given<Values>, visibility: Hiding) => Compilable<Row>,
): ((queryable: Queryable, visibility: Hiding, source: SourceOf<Values>) => Promise<Row[]>) => {
  const given = Object.fromEntries(
    Object.entries(values).map(([name, valueOf]) => [name, sql`${new Later(valueOf)}`]),
  ) as Given<Values>;
  let usual: CompiledQuery<Row> | undefined;
  return async (queryable, visibility, source) => {
    const compiled = visibility.hidesNothing
      ? (usual ??= write(given, visibility).compile())
      : write(given, visibility).compile();
    const parameters = compiled.parameters.map((value) =>
      value instanceof Later ? value.valueOf(source as never) : value,
    );
    return await queryable.query<Row>(compiled.sql, parameters);
  };
};
