import pg from "pg";
import { sqlState, StartError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";

/**
 * What stands between this process and its database: nothing, or a pooler. A pooler in transaction mode gives each
 * statement whatever connection is free, so that nothing can listen or hold a lock; an old one mixes up prepared
 * statements. Neither says so: it is found out here, before a lock stays on a connection of others for good.
 */
export interface Connections {
  /** What statements and transactions use. */
  connectionString: string;
  /** What needs a session uses: listening, the lock that says that this process lives, migrations. */
  directConnectionString: string | undefined;
  preparedStatements: boolean;
}

const THROUGH_POOLER =
  "DATABASE_URL leads through a pooler in transaction mode, on which nothing can listen: set DATABASE_DIRECT_URL, " +
  "beside it, to an address of the same database past that pooler.";
const DIRECT_THROUGH_POOLER =
  "DATABASE_DIRECT_URL leads through a pooler in transaction mode itself: it must be an address of the database past " +
  "any such pooler.";
const OTHER_DATABASE = "DATABASE_DIRECT_URL leads to another database than DATABASE_URL.";
const NO_PREPARED_STATEMENTS =
  "DATABASE_URL leads through a pooler that doesn't know prepared statements: set DATABASE_PREPARED_STATEMENTS=false, " +
  "or have the pooler know them (PgBouncer from 1.21 on does, with max_prepared_statements above 0).";

const TIMEOUT_MS = 10_000;
/** Poolers give out the connection that was used last (PgBouncer, unless told otherwise), or each in its turn. */
const ROUNDS = 3;
/** SQLSTATEs of a statement that exists already, and of one that doesn't. */
const MIXED_UP = new Set(["42P05", "26000"]);
const PROBE = "threadloom probe";

/** Backends may be on several machines behind a pooler, where a number alone may occur twice. */
const BACKEND =
  "select pid || ' ' || backend_start as backend from pg_stat_activity where pid = pg_backend_pid()";

type Pair = readonly [pg.Client, pg.Client];

const withPair = async <T>(connectionString: string, work: (pair: Pair) => Promise<T>): Promise<T> => {
  const open = () => {
    const client = new pg.Client({
      connectionString,
      application_name: PROBE,
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
    });
    // Without a listener a lost connection would end the process; the statement that needs it fails anyway.
    client.on("error", () => undefined);
    return client;
  };
  const pair = [open(), open()] as const;
  try {
    // One after the other: a second login would only repeat what is wrong with the first.
    for (const client of pair) await client.connect();
    return await work(pair);
  } finally {
    await Promise.all(pair.map((client) => client.end().catch(() => undefined)));
  }
};

/**
 * Whether each connection has a backend of its own for as long as it lives. A pooler betrays itself soon: one asks
 * just after the other has given something back, and while the other's transaction keeps what would be next.
 */
const areSessions = async ([one, other]: Pair): Promise<boolean> => {
  const backendOf = async (client: pg.Client): Promise<string> => {
    const { rows } = await client.query<{ backend: string }>(BACKEND);
    return rows[0]?.backend ?? "";
  };
  const mine = await backendOf(one);
  const theirs = await backendOf(other);
  if (mine === theirs) return false;
  for (let round = 1; round <= ROUNDS; round += 1) {
    if ((await backendOf(one)) !== mine) return false;
    await other.query("begin");
    // Before the other question, which a pooler with a single connection could not answer now.
    if ((await backendOf(other)) !== theirs) return false;
    if ((await backendOf(one)) !== mine) return false;
    await other.query("commit");
  }
  return true;
};

/** Whether two connections may call different statements by the same name. */
const keepStatementsApart = async (pair: Pair): Promise<boolean> => {
  try {
    for (let round = 1; round <= ROUNDS; round += 1) {
      for (const [index, client] of pair.entries()) {
        await client.query({ name: PROBE, text: `select $1::int + ${index}`, values: [round] });
      }
    }
    return true;
  } catch (error) {
    if (MIXED_UP.has(sqlState(error) ?? "")) return false;
    throw error;
  }
};

/** Whether a lock that one holds keeps the other one out: locks are the database's own. */
const meet = async (holder: pg.Client, other: pg.Client): Promise<boolean> => {
  const key = newId();
  await holder.query("select pg_advisory_lock(hashtextextended($1, 0))", [key]);
  const { rows } = await other.query<{ free: boolean }>(
    "select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as free",
    [key],
  );
  return rows[0]?.free === false;
};

/**
 * Makes sure that what needs a session has one, on the database that the statements are for. Some milliseconds where
 * no pooler is; leaves nothing behind.
 *
 * Throws StartError, with a sentence that names the setting to change, and what `pg` throws if `connectionString`
 * can't be used.
 */
export const assertConnections = async (connections: Connections): Promise<void> => {
  const { connectionString, directConnectionString, preparedStatements } = connections;
  await withPair(connectionString, async (pair) => {
    if (directConnectionString === undefined) {
      if (!(await areSessions(pair))) throw new StartError(THROUGH_POOLER);
      return;
    }
    let reached = false;
    await withPair(directConnectionString, async (direct) => {
      reached = true;
      if (!(await areSessions(direct))) throw new StartError(DIRECT_THROUGH_POOLER);
      if (!(await meet(direct[0], pair[0]))) throw new StartError(OTHER_DATABASE);
    }).catch((error: unknown) => {
      if (reached) throw error;
      const reason = (error as Error).message || (sqlState(error) ?? "");
      throw new StartError(`DATABASE_DIRECT_URL can't be used: ${reason}.`, { cause: error });
    });
    if (preparedStatements && !(await keepStatementsApart(pair)))
      throw new StartError(NO_PREPARED_STATEMENTS);
  });
};
