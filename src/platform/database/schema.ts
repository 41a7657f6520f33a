/**
 * The schema that the tables stand in. A database may belong to others, too: a table `threads` or `migrations` in
 * `public` is theirs. Statements name the schema, since a `search_path` is lost behind a pooler in transaction mode,
 * and they name the default one: so a statement can be read, found and pasted into psql as it stands in the code.
 */
export const DEFAULT_SCHEMA = "threadloom";

/** A plain name, short enough that a connection's name (63 bytes) has room for it. */
export const isSchemaName = (name: string): boolean =>
  /^[a-z_][a-z0-9_]{0,39}$/.test(name) && !name.startsWith("pg_") && name !== "information_schema";

const QUALIFIER = new RegExp(`\\b${DEFAULT_SCHEMA}\\.(?=[a-z])`, "g");

/**
 * Makes statements that name the default schema name another one. Only texts of ours go through it: what comes from
 * outside is a parameter, never part of a statement.
 */
export const inSchema = (schema: string): ((statement: string) => string) =>
  schema === DEFAULT_SCHEMA
    ? (statement) => statement
    : (statement) => statement.replace(QUALIFIER, `"${schema}".`);
