import type { Logger } from "../lib/logger.ts";
import { listenTo } from "./listening.ts";
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

/** A signal is a hint that the database changed. A lost signal costs only latency, because each waiter also polls. */
export type SignalKind =
  /** Workers with a free slot should claim runs. */
  | "available"
  /** Sent only if another process may wait for the run's end. */
  | "ended"
  /** A run was rolled back before it began. The run has no row and no events, so only the signal carries its end. */
  | "gone"
  /** A process waits for the end of a run that another one executes. */
  | "awaited"
  /** `runs.cancel_action` says how. */
  | "cancel"
  /** Events were appended to the event log. */
  | "events"
  /** The executor should write the run's events to the event log. */
  | "watch"
  /** The event log refused events of a run that goes on in memory. Readers in other processes lose the stream. */
  | "unlogged"
  /** A process reads the events of a thread and its future runs; `runId` is the id of that process. */
  | "follow"
  /** As `follow`, also over the protocol: future runs must produce protocol events. */
  | "follow-protocol";

export interface Signal {
  kind: SignalKind;
  threadId: string;
  runId: string;
  /** Only for `gone`: the place of the end among the thread's events. */
  turn?: number | undefined;
}

export type SignalHandler = (signal: Signal) => void;

/** NOTIFY in a transaction takes a global lock at commit, which cost 61 % of the throughput at 32 clients. */
const COALESCE_MS = 10;
/**
 * Alone on its database, a process sends no signals, which saves a statement per 10 ms. A process with signals to send
 * looks for others once in this time. A new process polls until others see it.
 */
const ALONE_FOR_MS = 1_000;

/** NOTIFY carries less than 8,000 bytes. A signal takes at most 90 bytes with its comma. */
const SIGNALS_PER_NOTIFY = 85;
const toText = ({ kind, threadId, runId, turn }: Signal): string =>
  `${kind}:${runId}:${threadId}${turn === undefined ? "" : `:${turn}`}`;

const fromText = (text: string): Signal | undefined => {
  const [kind, runId, threadId, turn] = text.split(":");
  return kind === undefined || runId === undefined || threadId === undefined
    ? undefined
    : { kind: kind as SignalKind, threadId, runId, turn: turn === undefined ? undefined : Number(turn) };
};

const createSubscribers = () => {
  const ofAll = new Set<SignalHandler>();
  const ofThreads = new Map<string, Set<SignalHandler>>();
  return {
    add(handler: SignalHandler): () => void {
      ofAll.add(handler);
      return () => ofAll.delete(handler);
    },
    addTo(threadId: string, handler: SignalHandler): () => void {
      const handlers = ofThreads.get(threadId) ?? new Set();
      ofThreads.set(threadId, handlers.add(handler));
      return () => {
        if (handlers.delete(handler) && handlers.size === 0) ofThreads.delete(threadId);
      };
    },
    publish(signal: Signal): void {
      for (const handler of ofAll) handler(signal);
      for (const handler of ofThreads.get(signal.threadId) ?? []) handler(signal);
    },
  };
};

interface SignalsOptions {
  database: Database;
  /** Not through a pooler in transaction mode. */
  connectionString: string;
  /** Names the lock that shows others whether this process lives. */
  processId: string;
  logger: Logger;
}

export const listenerName = (schema: string): string => `${schema} listener`;

const NOTIFY = statement(
  { channel: "text", payload: "text" },
  (sql) => `select pg_notify(${sql.channel}, ${sql.payload})`,
);
const COUNT_LISTENERS = statement(
  { applicationName: "text" },
  (sql) => `select count(*)::int as listeners from pg_stat_activity
   where application_name = ${sql.applicationName} and datname = current_database()`,
);

export const openSignals = async ({ database, connectionString, processId, logger }: SignalsOptions) => {
  // One channel for a whole schema: 200 idle listeners on other channels cut 40,000 notifies/s to 290.
  const channel = database.schema;
  const applicationName = listenerName(database.schema);
  const subscribers = createSubscribers();
  const outgoing = new Set<string>();
  let flushTimer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> = Promise.resolve();
  /** No other process listens. */
  let alone = false;
  let checkedAt = -Infinity;
  let closed = false;

  const deliver = (payload: string | undefined): void => {
    for (const item of (payload ?? "").split(",")) {
      const signal = fromText(item);
      if (signal !== undefined) subscribers.publish(signal);
    }
  };

  const checkOthers = async (): Promise<void> => {
    const now = performance.now();
    if (now - checkedAt < ALONE_FOR_MS) return;
    checkedAt = now;
    try {
      const rows = await COUNT_LISTENERS.query<{ listeners: number }>(database, { applicationName });
      alone = listening.isOpen && rows[0]?.listeners === 1;
    } catch {
      alone = false;
    }
  };

  const flush = async (): Promise<void> => {
    if (outgoing.size === 0) return;
    await checkOthers();
    const items = [...outgoing];
    outgoing.clear();
    if (alone) return deliver(items.join(","));
    for (let start = 0; start < items.length; start += SIGNALS_PER_NOTIFY) {
      const payload = items.slice(start, start + SIGNALS_PER_NOTIFY).join(",");
      try {
        await NOTIFY.query(database, { channel, payload });
      } catch (error) {
        logger.debug({ err: error }, "signals could not be sent; their receivers poll");
      }
    }
  };

  const listening = await listenTo(channel, {
    connectionString,
    applicationName,
    processId,
    onNotification: deliver,
    logger,
  });

  return {
    /** Reaches every process, including this one. Never throws, never waits. */
    send(signal: Signal): void {
      if (closed) return;
      // Published at once, because the next run may begin before the batch is sent. The batch delivers the signal
      // again.
      if (signal.kind === "gone") subscribers.publish(signal);
      outgoing.add(toText(signal));
      flushTimer ??= setTimeout(() => {
        flushTimer = undefined;
        flushing = flushing.then(flush);
      }, COALESCE_MS);
    },
    subscribe: subscribers.add,
    subscribeToThread: subscribers.addTo,
    async close(): Promise<void> {
      clearTimeout(flushTimer);
      flushing = flushing.then(flush);
      await flushing;
      closed = true;
      await listening.close();
    },
  };
};

export type Signals = Awaited<ReturnType<typeof openSignals>>;
