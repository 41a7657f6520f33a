import type { Caller } from "../../../access/caller.ts";
import type { Room } from "../../../http/room.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { EventLog, RunEvent, RunPhase } from "../log.ts";
import type { RunSelector } from "../../queue/attempts.ts";
import { News, patiently } from "../waiting.ts";
import { isOfWire, type Wire } from "../wires.ts";
import type { RunReader } from "../channel.ts";

export interface LogReaderOptions {
  eventLog: EventLog;
  run: RunSelector;
  after: number | undefined;
  wire: Wire;
  /** The run's events are logged without a request. */
  resumable: boolean;
  phaseOf: (run: RunSelector) => Promise<RunPhase>;
  /** `isUnlogged`: the log lacks events of the run. */
  watch(wake: (isUnlogged?: boolean) => void): () => void;
  askForEvents(): void;
  onLocal(after: number | undefined): RunReader | undefined;
  /** For events that are larger than a page. */
  readRoom: Room;
  caller: Caller | undefined;
  isStopped: () => boolean;
  logger: Logger;
}

/** Reads the log if a signal was lost. */
const POLL_MS = 500;
const PAGE_EVENTS = 500;
const PAGE_BYTES = 256 * 1024;

interface Poll {
  phase: RunPhase;
  events: RunEvent[];
}

/** Reads a run that executes or executed in another process. */
export const readLog = (options: LogReaderOptions): RunReader => {
  const { eventLog, run, resumable, phaseOf, watch, askForEvents, onLocal, isStopped } = options;
  const { readRoom, caller, logger, wire } = options;
  let { after } = options;
  let isLogged = resumable;
  let done = false;
  /**
   * Delivered once the run's end is stored, because clients then read the run's status. If events of another attempt
   * follow, the attempt of this error has lost the run.
   */
  let held: RunEvent | undefined;
  const unread = (): number | undefined => (held === undefined ? after : held.seq - 1);
  const news = new News();
  let local: RunReader | undefined;
  let isUnlogged = false;
  const unwatch = watch((isNow = false) => {
    isUnlogged ||= isNow;
    news.come();
  });
  /** The client has taken the large event that it was given. */
  let taken: (() => void) | undefined;

  const readPage = async (from: number): Promise<RunEvent[]> => {
    const room = { events: PAGE_EVENTS, bytes: PAGE_BYTES, wire };
    const events = await eventLog.read(run, from, { ...room, largeToo: false });
    if (events !== "large") return events;
    return await readRoom.make(caller, async () => {
      if (done) return [];
      const large = await eventLog.read(run, from, { ...room, largeToo: true });
      if (done || large === "large") return [];
      taken?.();
      taken = readRoom.unread(
        caller,
        large.reduce((sum, { data }) => sum + data.length, 0),
      );
      return large;
    });
  };

  const poll = async (): Promise<Poll> => {
    // The phase is read before the events: an ended run has all its events in the log.
    const phase = await phaseOf(run);
    if (after !== undefined) {
      return { phase, events: await readPage(after) };
    }
    // A reader of new events only begins at the log's end, after the run's `metadata`.
    const lastSeq = await eventLog.lastSeq(run);
    const opening = lastSeq < 0 ? undefined : await eventLog.opening(run);
    after = lastSeq;
    return { phase, events: opening === undefined ? [] : [opening] };
  };

  return {
    async next() {
      taken?.();
      for (;;) {
        if (done) return "ended";
        if (isStopped()) return "lost";
        // A run that was pending may execute here by now.
        local ??= onLocal(unread());
        if (local !== undefined) return await local.next();
        news.forget();
        const found = await patiently(
          poll,
          () => !done && !isStopped(),
          (error) => logger.error({ err: error, run_id: run.runId }, "the events of a run could not be read"),
        );
        if (found === "lost") return done ? "ended" : "lost";
        const last = found.events.at(-1);
        if (last !== undefined) {
          isLogged = true;
          after = Math.max(after ?? -1, last.seq);
          held = last.event === "error" ? last : undefined;
          const seen = found.events.filter(({ event }) => event !== "error" && isOfWire(event, wire));
          if (seen.length > 0) return seen;
          continue;
        }
        // The run may have begun and ended here during the query; then its events are only in memory.
        local ??= onLocal(unread());
        if (local !== undefined) continue;
        // A clean end would hide the missing events.
        if (isUnlogged) return "lost";
        if (found.phase === "ended") {
          const failure = held;
          held = undefined;
          return failure === undefined ? "ended" : [failure];
        }
        // Asks in each round, because a signal may be lost. A pending run is not asked for: if this process executed
        // it, it would log events that its memory has.
        if (!isLogged && found.phase === "running") askForEvents();
        await news.wait(POLL_MS);
      }
    },
    close() {
      done = true;
      taken?.();
      unwatch();
      local?.close();
      news.come();
    },
  };
};
