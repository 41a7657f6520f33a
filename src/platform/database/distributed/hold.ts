import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "../../lib/logger.ts";
import { SHOW_LIFE } from "../listening.ts";
import { statement } from "../statement.ts";

/** The lock mode ShareLock: Citus' own statements take it, and moves of shards take one that conflicts with it. */
const SHARE_LOCK = 5;
/** How long a move of a shard waits at most until its turn is noticed. */
const LOOK_FOR_MOVES_MS = 1_000;
const RETRY_MS = 250;
/** How often the coordinator is asked whether the cluster has another node instead. */
const ASK_EVERY_MS = 2_000;
const PATIENCE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;

const LOCK_SHARDS = statement(
  { shardIds: "bigint[]" },
  (sql) => `select lock_shard_metadata(${SHARE_LOCK}, ${sql.shardIds})`,
);
const IS_AWAITED = `select exists (select from pg_locks w where not w.granted
  and pg_backend_pid() = any(pg_blocking_pids(w.pid))) as awaited`;

const LOOK = { name: "look for moves", text: IS_AWAITED, query_timeout: CONNECT_TIMEOUT_MS };

/** `cannot_connect_now`, a passing fault. */
const notNow = (message: string): Error => Object.assign(new Error(message), { code: "57P03" });

/** The end of a lost connection may never be confirmed. */
const endLater = (client: pg.Client | undefined): void => void client?.end().catch(() => undefined);

interface HoldOptions {
  /** Of the node. */
  connectionString: string;
  /** As in `NodesOptions`. */
  processId: string | undefined;
  /** All shards, wherever they are: a move locks its shards on each node. */
  shards(client: pg.Client): Promise<readonly string[]>;
  /** Learns where the shards are. Called with their locks, so no move can end meanwhile. */
  learnPlaces(client: pg.Client): Promise<void>;
  /** Whether the cluster no longer knows the node. Asked while the node can't be used; then the hold ends. */
  isGone(): Promise<boolean>;
  /** Called with what `during` may throw. */
  onFailure(error: unknown): void;
  logger: Logger;
}

/**
 * This process sends statements to shards directly, so it holds the locks that such statements of Citus would take. A
 * transaction without a snapshot holds them. Before its last step, a move of a shard waits for its locks on all nodes; then
 * this process sends nothing to the node, lets its statements end, gives the locks away, and learns the new places.
 */
export const holdShards = (options: HoldOptions) => {
  const { connectionString, processId, shards, learnPlaces, isGone, onFailure, logger } = options;
  let client: pg.Client | undefined;
  let closed = false;
  let underWay = 0;
  let settled: (() => void) | undefined;
  /** Why the shards could not be taken in the last try. */
  let failure: unknown;
  /** Statements that wait for the end of a try. */
  let waiting: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;
  let taking: pg.Client | undefined;

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
      query_timeout: PATIENCE_MS,
      keepAlive: true,
    });
    fresh.on("error", () => undefined);
    taking = fresh;
    try {
      await fresh.connect();
      // Before the shards, which may be moving.
      if (processId !== undefined) await fresh.query(SHOW_LIFE.compile({ processId }));
      const shardIds = await shards(fresh);
      await fresh.query("begin; set local idle_in_transaction_session_timeout = 0");
      await fresh.query(LOCK_SHARDS.compile({ shardIds }));
      await learnPlaces(fresh);
    } catch (error) {
      endLater(fresh);
      throw error;
    } finally {
      taking = undefined;
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
    let askedAt = -Infinity;
    for (let failures = 0; !closed; failures += 1) {
      try {
        return await take();
      } catch (error) {
        logger[failures === 0 ? "warn" : "debug"]({ err: error }, "the shards of a node can't be used yet");
        tried(error);
        if (performance.now() - askedAt >= ASK_EVERY_MS) {
          askedAt = performance.now();
          if (await isGone()) return;
        }
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
    if (asked === undefined) return;
    try {
      const { rows } = await asked.query<{ awaited: boolean }>(LOOK);
      if (rows[0]?.awaited === true && client === asked) again("a shard moves");
    } catch (error) {
      logger.debug({ err: error }, "moves of shards can't be looked for");
      if (client === asked) again("the connection that holds the shards of a node does not answer");
    }
  };
  const lookLater = (): void => {
    timer = setTimeout(() => {
      void look().then(() => closed || lookLater());
    }, LOOK_FOR_MOVES_MS);
    timer.unref();
  };

  void takeUntilHeld();
  lookLater();

  return {
    get isHeld(): boolean {
      return client !== undefined;
    },
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
      const old = client ?? taking;
      client = undefined;
      tried(notNow("The database is being closed."));
      endLater(old);
    },
  };
};

export type Hold = ReturnType<typeof holdShards>;
