import { z } from "zod";
import { StartError } from "../domain/errors.ts";
import { addressesOf } from "../database/addresses.js";
import { DEFAULT_SCHEMA, isSchemaName } from "../database/schema.ts";
import { flag, seconds, wholeNumber, type Options } from "./option.ts";

export const isPostgresUrl = (value: string): boolean =>
  addressesOf(value).length === 1 &&
  URL.canParse(value) &&
  ["postgres:", "postgresql:"].includes(new URL(value).protocol);

const arePostgresUrls = (value: string): boolean => addressesOf(value).every(isPostgresUrl);

export const DATABASE_OPTIONS = {
  databaseUrl: {
    environment: ["DATABASE_URL", "DATABASE_URLS", "DATABASE_URI", "POSTGRES_URI"],
    secret: true,
    expected: "a URL like postgresql://user:password@host:5432/database",
    schema: z.string().refine(arePostgresUrls).optional(),
    description:
      "PostgreSQL to use: postgresql://user:password@host:5432/database. Several addresses, separated by commas, lead to a primary and its standbys. Not set: an embedded PostgreSQL.",
  },
  databaseDirectUrl: {
    environment: ["DATABASE_DIRECT_URL"],
    secret: true,
    expected: "a URL like postgresql://user:password@host:5432/database",
    schema: z.string().refine(arePostgresUrls).optional(),
    description: "The same database past a transaction pooler (docs/scaling.md).",
  },
  databaseWaitSeconds: {
    environment: ["DATABASE_WAIT_SECONDS"],
    default: "60",
    ...seconds(0, 3_600),
    description:
      "Seconds that a start waits for an unreachable database. Errors such as a wrong password end the start at once.",
  },
  /** Excludes the connections of the listener and the heartbeat. */
  databasePoolSize: {
    environment: ["DATABASE_POOL_SIZE", "LANGGRAPH_POSTGRES_POOL_MAX_SIZE"],
    default: "20",
    ...wholeNumber(2, 1_000),
    description: "Most database connections of this process and its graph processes together.",
  },
  databasePreparedStatements: {
    environment: ["DATABASE_PREPARED_STATEMENTS"],
    default: "true",
    ...flag,
    description: "false: for a transaction pooler without prepared statements.",
  },
  databaseSchema: {
    environment: ["DATABASE_SCHEMA"],
    default: DEFAULT_SCHEMA,
    expected: "a name of at most 40 lower case letters, digits and _ that does not begin with a digit or pg_",
    schema: z.string().refine(isSchemaName),
    description:
      "Schema of the tables, created at the first start. Deployments can share a database, each with its own schema.",
  },
  databaseListen: {
    environment: ["DATABASE_LISTEN"],
    default: "true",
    ...flag,
    description: "false: for a database without LISTEN. Processes then poll.",
  },
  databaseAdvisoryLocks: {
    environment: ["DATABASE_ADVISORY_LOCKS"],
    default: "true",
    ...flag,
    description:
      "false: for a database without advisory locks. Only an expired lease then shows a dead server.",
  },
  databaseSessions: {
    environment: ["DATABASE_SESSIONS"],
    default: "true",
    ...flag,
    description: "false: for a database whose pg_locks and pg_stat_activity do not list all sessions.",
  },
} satisfies Options;

/** @throws StartError if both names are set, and name different databases */
export const assertOneDatabase = ({
  DATABASE_URL: one,
  DATABASE_URLS: several,
}: Readonly<Record<string, string | undefined>>): void => {
  if (one && several && one !== several)
    throw new StartError("DATABASE_URL and DATABASE_URLS differ. Set one of them.");
};

export const unusedDataWarning = (
  namesFolder: boolean,
  databaseUrl: string | undefined,
): string | undefined =>
  namesFolder && databaseUrl !== undefined
    ? "The database is not in --data: it is named by its address, as by DATABASE_URL. Only schemas of graphs are kept there."
    : undefined;
