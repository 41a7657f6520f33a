import { retryPassing } from "../database/passing-faults.ts";
import type { Logger } from "../lib/logger.ts";
import type { EventLog, RunEvent } from "./event-log.ts";
import type { RunReader } from "./run-reader.ts";

export interface LogReaderOptions {
  eventLog: EventLog;
  runId: string;
  /** See ReadOptions. */
  after: number | undefined;
  /** Events are in the log without anybody asking for them. */
  resumable: boolean;
  /** `ended` also of a run that is gone. */
  phaseOf: (runId: string) => Promise<"pending" | "running" | "ended">;
  /** Calls back when there may be something new; returns the end of that. */
  watch(wake: () => void): () => void;
  /** Asks the process that executes the run to write its events to the log. */
  askForEvents(): void;
  /** A reader in memory that goes on after the event with this id, if the run has come to be executed here. */
  onLocal(after: number | undefined): RunReader | undefined;
  /** This process stops. */
  isStopped: () => boolean;
  logger: Logger;
}

/** A reader of the event log looks by itself this often, should a signal have been lost. */
const POLL_MS = 500;
/** Events that a reader of the log takes at a time: so many, or those that together have so many bytes. */
const PAGE_EVENTS = 500;
const PAGE_BYTES = 1024 * 1024;
/**
 * How long a reader waits for a database that is away: longer than a failover, and the client hears heartbeats. After
 * that its connection is cut, and whoever comes back is told 503.
 */
const PATIENCE_SECONDS = 60;

interface Look {
  phase: "pending" | "running" | "ended";
  events: RunEvent[];
}

/** Reads a run that another process executes, or has executed. */
export const readLog = (options: LogReaderOptions): RunReader => {
  const { eventLog, runId, resumable, phaseOf, watch, askForEvents, onLocal, isStopped, logger } = options;
  let { after } = options;
  let heard = resumable;
  let done = false;
  let wake: (() => void) | undefined;
  let local: RunReader | undefined;
  const unwatch = watch(() => wake?.());

  const look = async (): Promise<Look> => {
    // Asked before the events are read: an end that is seen has all its events in the log.
    const phase = await phaseOf(runId);
    if (after !== undefined) {
      return { phase, events: await eventLog.read(runId, after, { events: PAGE_EVENTS, bytes: PAGE_BYTES }) };
    }
    const lastSeq = await eventLog.lastSeq(runId);
    const opening = lastSeq < 0 ? undefined : await eventLog.opening(runId);
    after = lastSeq;
    return { phase, events: opening === undefined ? [] : [opening] };
  };

  return {
    async next() {
      for (;;) {
        if (done) return "ended";
        if (isStopped()) return "lost";
        // The run may have been pending when the reader came, and be executed right here.
        local ??= onLocal(after);
        if (local !== undefined) return await local.next();
        const arrival = new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, POLL_MS);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        let found: Look;
        try {
          found = await retryPassing(look, {
            forMs: PATIENCE_SECONDS * 1_000,
            isWanted: () => !done && !isStopped(),
          });
        } catch (error) {
          wake?.();
          if (done) return "ended";
          if (isStopped()) return "lost";
          logger.error({ err: error, run_id: runId }, "the events of a run could not be read");
          return "lost";
        }
        const last = found.events.at(-1);
        if (last !== undefined) {
          wake?.();
          heard = true;
          after = Math.max(after ?? -1, last.seq);
          return found.events;
        }
        // It may have begun here and ended while the database was being asked; then its events are in memory only.
        local ??= onLocal(after);
        if (local !== undefined || found.phase === "ended") wake?.();
        if (local !== undefined) continue;
        if (found.phase === "ended") return "ended";
        // Again and again until something comes: a lost signal would otherwise leave the reader with nothing.
        // Not while it is pending: who then executes it may be this process, and would log it for nobody.
        if (!heard && found.phase === "running") askForEvents();
        await arrival;
        wake = undefined;
      }
    },
    close() {
      done = true;
      unwatch();
      local?.close();
      wake?.();
    },
  };
};
