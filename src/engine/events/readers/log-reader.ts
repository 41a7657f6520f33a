import { retryPassing } from "../../../platform/database/passing-faults.ts";
import { ThreadloomError } from "../../../platform/domain/errors.ts";
import type { Gate } from "../../../platform/lib/gate.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { EventLog, RunAddress, RunEvent, RunPhase } from "../log.ts";
import { isOfWire, type Wire } from "../wires.ts";
import type { RunReader } from "./channel-reader.ts";

export interface LogReaderOptions {
  eventLog: EventLog;
  run: RunAddress;
  /** See ReadOptions. */
  after: number | undefined;
  wire: Wire;
  /** Events are in the log without anybody asking for them. */
  resumable: boolean;
  /** See ReadOptions. */
  cameBeforeEnd: boolean;
  phaseOf: (run: RunAddress) => Promise<RunPhase>;
  /** Calls back when there may be something new; returns the end of that. */
  watch(wake: () => void): () => void;
  /** Asks the process that executes the run to write its events to the log. */
  askForEvents(): void;
  /** Whether the process that executes the run has said that its events can't be logged. */
  isUnlogged: () => boolean;
  /** A reader in memory that goes on after the event with this id, if the run has come to be executed here. */
  onLocal(after: number | undefined): RunReader | undefined;
  /** Where those wait who are about to read an event that is larger than a page: see hub.ts. */
  largeEvents: Gate;
  /** This process stops. */
  isStopped: () => boolean;
  logger: Logger;
}

/** A reader of the event log looks by itself this often, should a signal have been lost. */
const POLL_MS = 500;
/** Events that a reader of the log takes at a time: so many, or those that together have so many bytes. */
const PAGE_EVENTS = 500;
const PAGE_BYTES = 256 * 1024;
/**
 * How long a reader waits for a database that is away: longer than a failover, and the client hears heartbeats. After
 * that its connection is cut, and whoever comes back is told 503.
 */
const PATIENCE_SECONDS = 60;

interface Poll {
  phase: RunPhase;
  events: RunEvent[];
}

/** Reads a run that another process executes, or has executed. */
export const readLog = (options: LogReaderOptions): RunReader => {
  const { eventLog, run, resumable, phaseOf, watch, askForEvents, onLocal, isStopped } = options;
  const { largeEvents, logger, wire } = options;
  let { after, cameBeforeEnd } = options;
  let received = resumable;
  let done = false;
  let wake: (() => void) | undefined;
  let local: RunReader | undefined;
  const unwatch = watch(() => wake?.());
  const closed = new AbortController();
  /** Gives back the place for a large event; it is held until that event was taken by the client. */
  let leave: (() => void) | undefined;

  const readPage = async (from: number): Promise<RunEvent[]> => {
    for (;;) {
      const room = { events: PAGE_EVENTS, bytes: PAGE_BYTES, largeToo: leave !== undefined, wire };
      const events = await eventLog.read(run, from, room);
      if (events !== "large") return events;
      const given = await largeEvents.enter(closed.signal);
      // Let in at the very moment at which its client left.
      if (done) {
        given();
        return [];
      }
      leave = given;
    }
  };

  const poll = async (): Promise<Poll> => {
    // Asked before the events are read: an end that is seen has all its events in the log.
    const phase = await phaseOf(run);
    if (after !== undefined) {
      return { phase, events: await readPage(after) };
    }
    const lastSeq = await eventLog.lastSeq(run);
    const opening = lastSeq < 0 ? undefined : await eventLog.opening(run);
    after = lastSeq;
    return { phase, events: opening === undefined ? [] : [opening] };
  };

  return {
    async next() {
      leave?.();
      leave = undefined;
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
        let found: Poll;
        try {
          found = await retryPassing(poll, {
            forMs: PATIENCE_SECONDS * 1_000,
            isWanted: () => !done && !isStopped(),
          });
        } catch (error) {
          wake?.();
          if (done) return "ended";
          if (isStopped()) return "lost";
          if (error instanceof ThreadloomError)
            logger.warn({ err: error, run_id: run.runId }, "a reader waited in vain");
          else logger.error({ err: error, run_id: run.runId }, "the events of a run could not be read");
          return "lost";
        }
        const last = found.events.at(-1);
        if (last !== undefined) {
          wake?.();
          received = true;
          after = Math.max(after ?? -1, last.seq);
          const seen = found.events.filter(({ event }) => isOfWire(event, wire));
          if (seen.length > 0) return seen;
          continue;
        }
        // It may have begun here and ended while the database was being asked; then its events are in memory only.
        local ??= onLocal(after);
        const hasEnded = found.phase === "ended" || found.phase === "ended-unlogged";
        cameBeforeEnd ||= !hasEnded;
        const isLost =
          options.isUnlogged() ||
          found.phase === "running-unlogged" ||
          (found.phase === "ended-unlogged" && cameBeforeEnd);
        if (local !== undefined || hasEnded || isLost) wake?.();
        if (local !== undefined) continue;
        // Some are missing: a clean end would look as if those were all.
        if (isLost) return "lost";
        if (hasEnded) return "ended";
        // Again and again until something comes: a lost signal would otherwise leave the reader with nothing.
        // Not while it is pending: who then executes it may be this process, and would log it for nobody.
        if (!received && found.phase === "running") askForEvents();
        await arrival;
        wake = undefined;
      }
    },
    close() {
      done = true;
      closed.abort();
      leave?.();
      unwatch();
      local?.close();
      wake?.();
    },
  };
};
