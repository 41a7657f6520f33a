/**
 * Statements name the schema, because a pooler in transaction mode loses a `search_path`. With the default schema, they
 * can be pasted into psql.
 */
export const DEFAULT_SCHEMA = "threadloom";

/** At most 40 characters, for a connection's name (63 bytes). */
export const isSchemaName = (name: string): boolean =>
  /^[a-z_][a-z0-9_]{0,39}$/.test(name) && !name.startsWith("pg_") && name !== "information_schema";

const QUALIFIER = new RegExp(`\\b${DEFAULT_SCHEMA}\\.(?=[a-z])`, "g");

/** Only for texts of this code; outside values are parameters. */
export const inSchema = (schema: string): ((statement: string) => string) =>
  schema === DEFAULT_SCHEMA
    ? (statement) => statement
    : (statement) => statement.replace(QUALIFIER, `"${schema}".`);
