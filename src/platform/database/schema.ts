/**
 * Statements name the schema, since a `search_path` is lost behind a pooler in transaction mode. They name the default,
 * so that they can be pasted into psql.
 */
export const DEFAULT_SCHEMA = "threadloom";

/** Short enough for a connection's name (63 bytes). */
export const isSchemaName = (name: string): boolean =>
  /^[a-z_][a-z0-9_]{0,39}$/.test(name) && !name.startsWith("pg_") && name !== "information_schema";

const QUALIFIER = new RegExp(`\\b${DEFAULT_SCHEMA}\\.(?=[a-z])`, "g");

/** For texts of this code only: outside values are parameters. */
export const inSchema = (schema: string): ((statement: string) => string) =>
  schema === DEFAULT_SCHEMA
    ? (statement) => statement
    : (statement) => statement.replace(QUALIFIER, `"${schema}".`);
