import pg from "pg";
import { createBackOff } from "../lib/back-off.ts";
import type { Logger } from "../lib/logger.ts";
import { startPeriodic } from "../lib/periodic.ts";
import type { Database } from "./database.ts";

/**
 * What processes on one database tell each other. Every signal is a hint that something in the database changed:
 * a lost one costs latency (each waiter also polls), never correctness.
 */
export type SignalKind =
  /** Runs became available; workers with a free slot should claim. The id is a run's. */
  | "available"
  /** A run reached a terminal status. Not sent where nobody elsewhere can be waiting for it. */
  | "ended"
  /** Somebody waits for the end of a run that another process executes: it should say when it has come. */
  | "awaited"
  /** A run should be cancelled by the process that executes it; `runs.cancel_action` says how. */
  | "cancel"
  /** Events of a run were appended to the event log. */
  | "events"
  /** A reader on another process wants a run's events: its executor should write them to the event log. */
  | "watch";

export interface Signal {
  kind: SignalKind;
  runId: string;
}

export type SignalHandler = (signal: Signal) => void;

export interface Signals {
  /** Queues a signal to every process on this database, this one included. Never throws, never waits. */
  send(kind: SignalKind, runId: string): void;
  /** Returns the function that ends the subscription. */
  subscribe(handler: SignalHandler): () => void;
  close(): Promise<void>;
}

/**
 * Signals leave together, off the write path: NOTIFY inside the writing transaction takes a global lock at
 * commit and cost 61 % of the throughput at 32 clients.
 */
const COALESCE_MS = 10;
/**
 * A process that is alone on its database tells nobody, which saves a statement per 10 ms of work. It looks for
 * others this often; one that came a moment ago polls until it is seen.
 */
const LOOK_AROUND_MS = 1_000;

/** NOTIFY carries less than 8,000 bytes; a signal takes 45. */
const SIGNALS_PER_NOTIFY = 150;
/** The listening connection asks itself for a sign of life this often: a half-open one would stay silent for ever. */
const LIFE_SIGN_MS = 5_000;

export interface SignalsOptions {
  database: Database;
  /** Of the listening connection; a session connection, so not through a pooler in transaction mode. */
  connectionString: string;
  /** Holds a lock of its own while the connection lives, so that others see at once when it is dead. */
  processId: string;
  logger: Logger;
}

/** Opens the one LISTEN connection of this process. */
export const openSignals = async ({
  database,
  connectionString,
  processId,
  logger,
}: SignalsOptions): Promise<Signals> => {
  // One for all processes of a schema: idle listeners on other channels made 40,000 notifies/s into 290 (with 200 of them).
  const channel = database.schema;
  const applicationName = `${database.schema} listener`;
  const handlers = new Set<SignalHandler>();
  const outgoing = new Set<string>();
  let flushTimer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> = Promise.resolve();
  let client: pg.Client | undefined;
  let alone = false;
  let closed = false;
  let reconnectTimer: NodeJS.Timeout | undefined;
  const reconnecting = createBackOff();
  let lost = false;

  /** Signals of this process reach it by the same way as those of others. */
  const deliver = (payload: string | undefined): void => {
    for (const item of (payload ?? "").split(",")) {
      const [kind, runId] = item.split(":");
      if (kind === undefined || runId === undefined) continue;
      for (const handler of handlers) handler({ kind: kind as SignalKind, runId });
    }
  };

  const listen = async (): Promise<void> => {
    const fresh = new pg.Client({
      connectionString,
      application_name: applicationName,
      connectionTimeoutMillis: LIFE_SIGN_MS,
      keepAlive: true,
    });
    fresh.on("error", (error) => {
      if (!closed && client === fresh)
        logger.warn({ err: error }, "the listening connection was lost; reconnecting");
      drop(fresh);
    });
    fresh.on("end", () => drop(fresh));
    fresh.on("notification", (message) => deliver(message.payload));
    client = fresh;
    await fresh.connect();
    await fresh.query(`listen ${pg.escapeIdentifier(channel)}`);
    await fresh.query("select pg_advisory_lock_shared(hashtextextended($1, 0))", [processId]);
    reconnecting.reset();
    if (lost) logger.info("the listening connection is back again");
    lost = false;
  };
  const drop = (dropped: pg.Client): void => {
    if (client !== dropped) return;
    client = undefined;
    lost = true;
    dropped.end().catch(() => undefined);
    if (!closed) {
      reconnectTimer = setTimeout(() => {
        listen().catch((error: unknown) => {
          logger.debug({ err: error }, "the listening connection could not be opened yet");
          if (client !== undefined) drop(client);
        });
      }, reconnecting.next());
    }
  };
  const lifeSign = setInterval(() => {
    const asked = client;
    if (asked === undefined) return;
    const silence = setTimeout(() => {
      logger.warn("the listening connection does not answer; reconnecting");
      drop(asked);
    }, LIFE_SIGN_MS - 1_000);
    asked.query("select 1").then(
      () => clearTimeout(silence),
      () => {
        clearTimeout(silence);
        drop(asked);
      },
    );
  }, LIFE_SIGN_MS);
  lifeSign.unref();

  const flush = async (): Promise<void> => {
    const items = [...outgoing];
    outgoing.clear();
    if (alone) return deliver(items.join(","));
    for (let start = 0; start < items.length; start += SIGNALS_PER_NOTIFY) {
      const payload = items.slice(start, start + SIGNALS_PER_NOTIFY).join(",");
      try {
        await database.query("select pg_notify($1, $2)", [channel, payload]);
      } catch (error) {
        logger.debug({ err: error }, "signals could not be sent; their receivers poll");
      }
    }
  };

  const lookAround = async (): Promise<void> => {
    const rows = await database.query<{ listeners: number }>(
      `select count(*)::int as listeners from pg_stat_activity
       where application_name = $1 and datname = current_database()`,
      [applicationName],
    );
    alone = client !== undefined && rows[0]?.listeners === 1;
  };
  const looking = startPeriodic({
    everyMs: LOOK_AROUND_MS,
    work: lookAround,
    onError: () => {
      alone = false;
    },
  });

  await listen();
  return {
    send(kind, runId) {
      if (closed) return;
      outgoing.add(`${kind}:${runId}`);
      flushTimer ??= setTimeout(() => {
        flushTimer = undefined;
        flushing = flushing.then(flush);
      }, COALESCE_MS);
    },
    subscribe(handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    async close() {
      clearTimeout(flushTimer);
      flushing = flushing.then(flush);
      await flushing;
      closed = true;
      await looking.close();
      clearInterval(lifeSign);
      clearTimeout(reconnectTimer);
      const last = client;
      client = undefined;
      await last?.end().catch(() => undefined);
    },
  };
};
