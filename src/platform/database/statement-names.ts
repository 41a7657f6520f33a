import type pg from "pg";

/**
 * The code bounds the number of statements: lists are arrays, never `in ($1, $2, …)`. The cap guards against a composed
 * statement with endless variants.
 */
const STATEMENTS_AT_MOST = 500;

/**
 * Prepares each statement once per connection: 1.76x the throughput on a bare connection. Kysely sends unnamed
 * statements; there it is 1.3 to 1.4x.
 */
export const nameStatements = (client: pg.PoolClient): void => {
  const names = new Map<string, string>();
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  const named = (text: unknown, values: unknown, ...rest: unknown[]): unknown => {
    if (typeof text !== "string" || !Array.isArray(values)) return query(text, values, ...rest);
    let name = names.get(text);
    if (name === undefined) {
      if (names.size >= STATEMENTS_AT_MOST) return query(text, values, ...rest);
      name = `s${names.size}`;
      names.set(text, name);
    }
    return query({ name, text, values }, ...rest);
  };
  client.query = named as typeof client.query;
};
