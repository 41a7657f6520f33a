import type { Logger } from "../lib/logger.ts";
import { listenTo } from "./listening.ts";
import { startPeriodic } from "../lib/periodic.ts";
import { ALL_ACCELERATORS, type Accelerators } from "./accelerators.ts";
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
  /** A run was rolled back before it began: it had no events and has no row, so that its end is in its signal alone. */
  | "gone"
  /** Somebody waits for the end of a run that another process executes: it should say when it has come. */
  | "awaited"
  /** A run should be cancelled by the process that executes it; `runs.cancel_action` says how. */
  | "cancel"
  /** Events of a run were appended to the event log. */
  | "events"
  /** A reader on another process wants a run's events: its executor should write them to the event log. */
  | "watch"
  /** The events of a run can't be appended to the event log, though somebody asked for them: who reads them there is lost. */
  | "unlogged"
  /** A process reads the events of a thread, of its runs to come, too. In the place of a run stands the id of that process. */
  | "follow"
  /** The same, over the protocol wire: the runs that begin on the thread have to make its events. */
  | "follow-protocol";

/** Every signal is about one run. */
export interface Signal {
  kind: SignalKind;
  threadId: string;
  runId: string;
  /** Of `gone` alone: the place of the end among the events of the thread. */
  turn?: number | undefined;
}

export type SignalHandler = (signal: Signal) => void;

export interface Signals {
  /** Queues a signal to every process on this database, this one included. Never throws, never waits. */
  send(signal: Signal): void;
  /** Calls back for every signal. Returns the function that ends the subscription. */
  subscribe(handler: SignalHandler): () => void;
  /** Calls back for the signals of one thread; those of others cost such a subscriber nothing. */
  subscribeToThread(threadId: string, handler: SignalHandler): () => void;
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
const SERVER_CHECK_MS = 1_000;

/** NOTIFY carries less than 8,000 bytes; a signal takes 90 at most, with two ids of 36 and its comma. */
const SIGNALS_PER_NOTIFY = 85;
const toText = ({ kind, threadId, runId, turn }: Signal): string =>
  `${kind}:${runId}:${threadId}${turn === undefined ? "" : `:${turn}`}`;

const fromText = (text: string): Signal | undefined => {
  const [kind, runId, threadId, turn] = text.split(":");
  return kind === undefined || runId === undefined || threadId === undefined
    ? undefined
    : { kind: kind as SignalKind, threadId, runId, turn: turn === undefined ? undefined : Number(turn) };
};

/** Who is told of signals: of all, or by a map of those of one thread. */
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

export interface SignalsOptions {
  database: Database;
  /** Of the listening connection; a session connection, so not through a pooler in transaction mode. */
  connectionString: string;
  /** Holds a lock of its own while the connection lives, so that others see at once when it is dead. */
  processId: string;
  /** All of them if left out. Without `listen` this process hears only itself. */
  accelerators?: Accelerators;
  logger: Logger;
}

/** What the listening connections of a schema's servers are called in the database. */
export const listenerName = (schema: string): string => `${schema} listener`;

/** Opens the one LISTEN connection of this process, if it is to have one. */
export const openSignals = async ({
  database,
  connectionString,
  processId,
  accelerators = ALL_ACCELERATORS,
  logger,
}: SignalsOptions): Promise<Signals> => {
  // One for all processes of a schema: idle listeners on other channels made 40,000 notifies/s into 290 (with 200 of them).
  const channel = database.schema;
  const applicationName = listenerName(database.schema);
  const subscribers = createSubscribers();
  const outgoing = new Set<string>();
  let flushTimer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> = Promise.resolve();
  /** Nobody else listens, or nobody can. */
  let alone = !accelerators.listen;
  let closed = false;

  /** Signals of this process reach it by the same way as those of others. */
  const deliver = (payload: string | undefined): void => {
    for (const item of (payload ?? "").split(",")) {
      const signal = fromText(item);
      if (signal !== undefined) subscribers.publish(signal);
    }
  };

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

  const listening = accelerators.listen
    ? await listenTo(channel, {
        connectionString,
        applicationName,
        lock: accelerators.advisoryLocks ? processId : undefined,
        onNotification: deliver,
        logger,
      })
    : undefined;

  const checkServers = async (): Promise<void> => {
    const rows = await database.query<{ listeners: number }>(
      `select count(*)::int as listeners from pg_stat_activity
       where application_name = $1 and datname = current_database()`,
      [applicationName],
    );
    alone = listening?.isOpen === true && rows[0]?.listeners === 1;
  };
  const serverChecks =
    accelerators.listen && accelerators.sessions
      ? startPeriodic({
          everyMs: SERVER_CHECK_MS,
          work: checkServers,
          onError: () => {
            alone = false;
          },
        })
      : undefined;

  return {
    send(signal) {
      if (closed) return;
      // The run behind it may begin before the signals leave. It comes back with them, once more.
      if (signal.kind === "gone") subscribers.publish(signal);
      outgoing.add(toText(signal));
      flushTimer ??= setTimeout(() => {
        flushTimer = undefined;
        flushing = flushing.then(flush);
      }, COALESCE_MS);
    },
    subscribe: (handler) => subscribers.add(handler),
    subscribeToThread: (threadId, handler) => subscribers.addTo(threadId, handler),
    async close() {
      clearTimeout(flushTimer);
      flushing = flushing.then(flush);
      await flushing;
      closed = true;
      await serverChecks?.close();
      await listening?.close();
    },
  };
};
