import { z } from "zod";
import { DEFAULT_SCHEMA, isSchemaName } from "../database/schema.ts";
import { flag, seconds, wholeNumber, type Option } from "./option.ts";

/** The database, and what it can do. */
export interface DatabaseConfig {
  /** Undefined: start the embedded PostgreSQL. */
  readonly databaseUrl: string | undefined;
  /** For what needs a session, where a pooler in transaction mode is in the way. Undefined: `databaseUrl`, too. */
  readonly databaseDirectUrl: string | undefined;
  /** How long a start waits for a database that is not there yet. */
  readonly databaseWaitSeconds: number;
  /** Connections that this process may hold at most, beside its listener's and its heartbeat's. */
  readonly databasePoolSize: number;
  readonly databasePreparedStatements: boolean;
  /** The schema that the tables stand in. */
  readonly databaseSchema: string;
  /** Whether processes tell each other by LISTEN and NOTIFY; else they poll. */
  readonly databaseListen: boolean;
  readonly databaseAdvisoryLocks: boolean;
  /** Whether pg_stat_activity and pg_locks are looked at. */
  readonly databaseSessions: boolean;
}

const isPostgresUrl = (value: string): boolean =>
  URL.canParse(value) && ["postgres:", "postgresql:"].includes(new URL(value).protocol);

export const DATABASE_OPTIONS: { readonly [Key in keyof DatabaseConfig]: Option<DatabaseConfig[Key]> } = {
  databaseUrl: {
    environment: ["DATABASE_URL", "DATABASE_URI", "POSTGRES_URI"],
    secret: true,
    expected: "a URL like postgresql://user:password@host:5432/database",
    schema: z.string().refine(isPostgresUrl).optional(),
    description: "PostgreSQL server to use. Not set: an embedded one is started.",
  },
  databaseDirectUrl: {
    environment: ["DATABASE_DIRECT_URL"],
    secret: true,
    expected: "a URL like postgresql://user:password@host:5432/database",
    schema: z.string().refine(isPostgresUrl).optional(),
    description: "The same database past a transaction pooler, for what needs a session (docs/scaling.md).",
  },
  databaseWaitSeconds: {
    environment: ["DATABASE_WAIT_SECONDS"],
    default: "60",
    ...seconds(0, 3_600),
    description:
      "How long a start waits for a database that is not there yet, as one that is started beside it. What waiting does not mend, " +
      "like a wrong password, ends it at once; 0 waits for nothing.",
  },
  databasePoolSize: {
    environment: ["DATABASE_POOL_SIZE", "LANGGRAPH_POSTGRES_POOL_MAX_SIZE"],
    default: "20",
    ...wholeNumber(2, 1_000),
    description: "Database connections that this process and those of WORKERS hold at most, together.",
  },
  databasePreparedStatements: {
    environment: ["DATABASE_PREPARED_STATEMENTS"],
    default: "true",
    ...flag,
    description: "Set to false behind a transaction pooler that doesn't know prepared statements.",
  },
  databaseSchema: {
    environment: ["DATABASE_SCHEMA"],
    default: DEFAULT_SCHEMA,
    expected: "a name of at most 40 lower case letters, digits and _ that does not begin with a digit or pg_",
    schema: z.string().refine(isSchemaName),
    description:
      "Schema of the tables, made at the first start. Deployments may share a database, a schema each.",
  },
  databaseListen: {
    environment: ["DATABASE_LISTEN"],
    default: "true",
    ...flag,
    description: "Set to false on a database without LISTEN: processes find each other's work by polling.",
  },
  databaseAdvisoryLocks: {
    environment: ["DATABASE_ADVISORY_LOCKS"],
    default: "true",
    ...flag,
    description:
      "Set to false on a database without advisory locks: a dead worker is noticed by its lease alone.",
  },
  databaseSessions: {
    environment: ["DATABASE_SESSIONS"],
    default: "true",
    ...flag,
    description: "Set to false on a database whose pg_locks and pg_stat_activity do not list all sessions.",
  },
};

/** What is to be said of a folder that was named beside the address of a database; undefined if nothing is. */
export const unusedDataWarning = (
  namesFolder: boolean,
  databaseUrl: string | undefined,
): string | undefined =>
  namesFolder && databaseUrl !== undefined
    ? "The database is not in --data: it is named by its address, as by DATABASE_URL. Only schemas of graphs are kept there."
    : undefined;
