import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { sqlState, StartError } from "../domain/errors.ts";
import { newId } from "../lib/ids.ts";
import { withProbe } from "./probe.ts";
import { statement } from "./statement.ts";

/**
 * A pooler in transaction mode gives each transaction any free connection: LISTEN fails, locks stay on other
 * connections.
 */
interface DatabaseAddresses {
  connectionString: string;
  /** For LISTEN, the lock of a living process, and migrations. */
  directConnectionString: string | undefined;
}

const THROUGH_POOLER =
  "DATABASE_URL leads through a pooler in transaction mode, on which nothing can listen: set DATABASE_DIRECT_URL, " +
  "beside it, to an address of the same database past that pooler.";
const DIRECT_THROUGH_POOLER =
  "DATABASE_DIRECT_URL leads through a pooler in transaction mode itself: it must be an address of the database past " +
  "any such pooler.";
const OTHER_DATABASE = "DATABASE_DIRECT_URL leads to another database than DATABASE_URL.";
/** PostgreSQL releases locks within milliseconds of a connection's end. Behind a pooler the locks stay. */
const UNLOCKED_WITHIN_MS = 5_000;
const RETRY_MS = 5;

const LOCK = statement({ key: "text" }, (sql) => `select pg_advisory_lock(hashtextextended(${sql.key}, 0))`);
/** Releases the connection's own lock, which would otherwise stay on a pooler's connection. */
const WHOSE_LOCK = statement(
  { key: "text" },
  (sql) => `select case when pid = pg_backend_pid()
    then case when pg_advisory_unlock(hashtextextended(${sql.key}, 0)) then 'own' end else 'of another' end as whose
  from pg_locks
  where locktype = 'advisory' and objsubid = 1
    and database = (select oid from pg_database where datname = current_database())
    and (classid::bigint << 32 | objid::bigint) = hashtextextended(${sql.key}, 0)`,
);

/** A session keeps its lock until its end. */
const tryLock = async (
  holding: string,
  asking: pg.Client,
): Promise<"kept by its session" | "not kept" | "not seen"> => {
  const key = newId();
  const ask = async (): Promise<string | undefined> =>
    (await asking.query<{ whose: string }>(WHOSE_LOCK.compile({ key }))).rows[0]?.whose;
  const before = await withProbe(holding, async (holder) => {
    await holder.query(LOCK.compile({ key }));
    return await ask();
  });
  if (before === undefined) return "not seen";
  for (const end = performance.now() + UNLOCKED_WITHIN_MS; before !== "own"; await pause(RETRY_MS)) {
    const after = await ask();
    if (after === undefined) return "kept by its session";
    if (after === "own" || performance.now() > end) break;
  }
  return "not kept";
};

export const isSession = (connectionString: string): Promise<boolean> =>
  withProbe(
    connectionString,
    async (client) => (await tryLock(connectionString, client)) === "kept by its session",
  );

/**
 * After a refusal an unused lock may stay on a pooler's connection. Throws StartError, and errors of `pg` if
 * `connectionString` is unusable.
 */
export const assertSessions = async (addresses: DatabaseAddresses): Promise<void> => {
  const { connectionString, directConnectionString } = addresses;
  if (directConnectionString === undefined) {
    if (!(await isSession(connectionString))) throw new StartError(THROUGH_POOLER);
    return;
  }
  await withProbe(connectionString, async (client) => {
    const direct = await tryLock(directConnectionString, client).catch((error: unknown) => {
      const reason = (error as Error).message || (sqlState(error) ?? "");
      throw new StartError(`DATABASE_DIRECT_URL can't be used: ${reason}.`, { cause: error });
    });
    if (direct === "not seen") throw new StartError(OTHER_DATABASE);
    if (direct === "not kept") throw new StartError(DIRECT_THROUGH_POOLER);
  });
};
