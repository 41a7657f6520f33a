import { sql, type Compilable, type CompiledQuery, type RawBuilder } from "kysely";
import type { Queryable } from "./database.ts";

type ValuesOf = Readonly<Record<string, (source: never) => unknown>>;
type SourceOf<Values extends ValuesOf> =
  Values extends Readonly<Record<string, (source: infer Source) => unknown>> ? Source : never;
type Given<Values extends ValuesOf> = {
  readonly [Name in keyof Values]: RawBuilder<ReturnType<Values[Name]>>;
};

class Later {
  constructor(readonly valueOf: (source: never) => unknown) {}
}

/**
 * Kysely takes 20 to 100 µs to build a query. A visibility that hides rows changes the text, so each call then builds
 * the query.
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
