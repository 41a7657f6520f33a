import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "../../lib/logger.ts";
import { statement } from "../statement.ts";

/** The lock mode ShareLock: Citus' own statements take it, and moves of shards take one that conflicts with it. */
const SHARE_LOCK = 5;
/** How long a move of a shard waits at most until its turn is noticed. */
const LOOK_FOR_MOVES_MS = 1_000;
const RETRY_MS = 250;
const PATIENCE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;

const LOCK_SHARDS = statement(
  { shardIds: "bigint[]" },
  (sql) => `select lock_shard_metadata(${SHARE_LOCK}, ${sql.shardIds})`,
);
const IS_AWAITED = `select exists (select from pg_locks w where not w.granted
  and pg_backend_pid() = any(pg_blocking_pids(w.pid))) as awaited`;

/** `cannot_connect_now`, a passing fault. */
const notNow = (message: string): Error => Object.assign(new Error(message), { code: "57P03" });

/** The end of a lost connection may never be confirmed. */
const endLater = (client: pg.Client | undefined): void => void client?.end().catch(() => undefined);

interface HoldOptions {
  /** Of the node. */
  connectionString: string;
  /** Reads which shards are on the node now. Called while no statement is under way on it. */
  shardsNow(client: pg.Client): Promise<readonly string[]>;
  /** Called with what `during` may throw. */
  onFailure(error: unknown): void;
  logger: Logger;
}

/**
 * This process sends statements to shards directly, so it holds the lock that such a statement of Citus would take. A
 * transaction without a snapshot holds it. A move of a shard waits for the lock before its last step; then this process
 * sends nothing to the node, lets its statements end, gives the lock away, and learns where the shards are.
 */
export const holdShards = ({ connectionString, shardsNow, onFailure, logger }: HoldOptions) => {
  let client: pg.Client | undefined;
  let closed = false;
  let underWay = 0;
  let settled: (() => void) | undefined;
  /** Why the shards could not be taken in the last try. */
  let failure: unknown;
  /** Statements that wait for the end of a try. */
  let waiting: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;

  const tried = (error?: unknown): void => {
    failure = error;
    if (error !== undefined) onFailure(error);
    const all = waiting;
    waiting = [];
    for (const goOn of all) goOn();
  };

  const take = async (): Promise<void> => {
    const fresh = new pg.Client({
      connectionString,
      application_name: "threadloom shards",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
    });
    fresh.on("error", () => undefined);
    try {
      await fresh.connect();
      // Before the locks, to know what to lock, and with them, because a move may have ended meanwhile.
      for (let shardIds = await shardsNow(fresh); ;) {
        await fresh.query("begin; set local idle_in_transaction_session_timeout = 0");
        if (shardIds.length > 0) await fresh.query(LOCK_SHARDS.compile({ shardIds }));
        const now = await shardsNow(fresh);
        if (now.join() === shardIds.join()) break;
        await fresh.query("rollback");
        shardIds = now;
      }
    } catch (error) {
      endLater(fresh);
      throw error;
    }
    if (closed) return endLater(fresh);
    client = fresh;
    tried();
    fresh.once(
      "end",
      () => client === fresh && again("the connection that holds the shards of a node was lost"),
    );
  };

  const takeUntilHeld = async (): Promise<void> => {
    for (let failures = 0; !closed; failures += 1) {
      try {
        return await take();
      } catch (error) {
        logger[failures === 0 ? "warn" : "debug"]({ err: error }, "the shards of a node can't be used yet");
        tried(error);
        await pause(RETRY_MS);
      }
    }
  };

  const idle = (): Promise<void> =>
    underWay === 0 ? Promise.resolve() : new Promise((resolve) => (settled = resolve));

  /** Lets the statements end, then learns where the shards are. */
  const again = (why: string): void => {
    if (closed) return;
    logger.debug(why);
    const old = client;
    client = undefined;
    void idle().then(() => {
      endLater(old);
      return takeUntilHeld();
    });
  };

  const look = async (): Promise<void> => {
    const asked = client;
    if (asked !== undefined) {
      const { rows } = await asked.query<{ awaited: boolean }>(IS_AWAITED);
      if (rows[0]?.awaited === true && client === asked) again("a shard of a node moves");
    }
  };
  const lookLater = (): void => {
    timer = setTimeout(() => {
      look()
        .catch((error: unknown) => logger.debug({ err: error }, "moves of shards can't be looked for"))
        .finally(() => closed || lookLater());
    }, LOOK_FOR_MOVES_MS);
    timer.unref();
  };

  void takeUntilHeld();
  lookLater();

  return {
    /**
     * Calls `work` while this process holds the shards. Otherwise throws a passing fault (passing-faults.ts).
     */
    async during<Result>(work: () => Promise<Result>): Promise<Result> {
      if (client === undefined) {
        const late = pause(PATIENCE_MS, "late", { ref: false });
        while (client === undefined) {
          if (failure !== undefined) throw failure;
          const tryEnds = new Promise<void>((resolve) => waiting.push(resolve));
          if (closed || (await Promise.race([tryEnds, late])) === "late")
            tried(notNow("A node of the database can't be used at the moment."));
        }
      }
      underWay += 1;
      try {
        return await work();
      } finally {
        underWay -= 1;
        if (underWay === 0) settled?.();
      }
    },
    close(): void {
      closed = true;
      clearTimeout(timer);
      const old = client;
      client = undefined;
      tried(notNow("The database is being closed."));
      endLater(old);
    },
  };
};

export type Hold = ReturnType<typeof holdShards>;
