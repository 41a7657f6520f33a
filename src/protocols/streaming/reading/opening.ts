import { beforeTurn, turnOf } from "../../../engine/events/event-ids.ts";
import type { StreamingRepository } from "../repository.ts";
import { JUST_NOW_MS } from "./connections.ts";
import { attemptRunning, END_EVENTS_AT_MOST, lastSeqOf } from "./ends.ts";

export interface Opening {
  /** Events are read after this id of the thread. */
  after: number;
  /** Events up to this id are not sent. */
  since: number;
  /** Runs up to this turn had ended. 0: all events after `since` are sent. */
  endedTurn: number;
  /**
   * The last ended run that began; undefined while a run is unfinished. Its beginning and end are sent, and the ends of
   * later runs that never began.
   */
  newestTurn: number | undefined;
  /** This client may have started that run. */
  hasEndedJustNow: boolean;
  /** The newest run, if it waits: its interrupt is sent even if its events can't be read. */
  waitingRunId: string | undefined;
}

/** For a thread without runs. */
export const NOTHING_YET: Opening = {
  after: 0,
  since: 0,
  endedTurn: 0,
  newestTurn: undefined,
  hasEndedJustNow: false,
  waitingRunId: undefined,
};

/**
 * The opening of a connection that was open when this turn began. On a busy server the run may have ended before the
 * opening is read.
 */
export const beforeTurnBegan = (opening: Opening, turn: number): Opening =>
  turn > opening.endedTurn
    ? opening
    : { ...opening, endedTurn: turn - 1, newestTurn: undefined, hasEndedJustNow: false };

/** For a client that names no event. */
const REPLAYED_BYTES = 2 * 1024 * 1024;

const SYNTHESIZED = /^synth:([0-9a-f-]{36}):(.+)$/;

/**
 * The rule of the replay: docs/decisions/027-replay-and-ends-of-event-streaming.md. Every replica gives the same
 * replay, without memory.
 */
export const createOpenings = (repository: StreamingRepository) => {
  const afterSeq = async (threadId: string, since: number): Promise<Opening> => {
    const newest = await repository.newestRun(threadId);
    const last = lastSeqOf(turnOf(since));
    // The interrupts are among the run's events, so these are read again.
    const isWithinEnd = since < last && since > last - END_EVENTS_AT_MOST;
    const after = isWithinEnd ? beforeTurn(turnOf(since)) : since;
    return { ...NOTHING_YET, after, since, waitingRunId: newest?.waits ? newest.runId : undefined };
  };

  return {
    afterSeq,

    async afterEvent(threadId: string, eventId: string): Promise<Opening | undefined> {
      if (/^\d{1,16}$/.test(eventId)) return await afterSeq(threadId, Number(eventId));
      const [, runId, what] = SYNTHESIZED.exec(eventId) ?? [];
      if (runId === undefined || what === undefined) return undefined;
      const attempt = attemptRunning(what);
      if (attempt !== undefined) {
        const first = await repository.firstSeq(threadId, runId, attempt);
        return first === undefined ? undefined : await afterSeq(threadId, first);
      }
      const row = await repository.ended(threadId, runId);
      if (row === undefined) return undefined;
      const last = lastSeqOf(row.turn);
      // Events before these may be sent twice; clients detect duplicates by the ids.
      const isLast = what === "completed" || what === "failed";
      return await afterSeq(threadId, isLast ? last : last - END_EVENTS_AT_MOST + 1);
    },

    async fromBeginning(threadId: string): Promise<Opening> {
      const [newest, first] = await Promise.all([
        repository.newestRun(threadId),
        repository.replayStart(threadId, REPLAYED_BYTES),
      ]);
      const isOver = newest !== undefined && newest.status !== "pending" && newest.status !== "running";
      // An unfinished run's end is still to come.
      const endedTurn = newest === undefined ? 0 : isOver ? newest.lastTurn : newest.turn - 1;
      const isSent = isOver && newest.unfinished === 0;
      return {
        after: first === undefined ? Math.max(0, beforeTurn(newest?.turn ?? 0)) : first - 1,
        since: 0,
        endedTurn,
        newestTurn: isSent ? newest.turn : undefined,
        hasEndedJustNow: isSent && newest.endedAgo < JUST_NOW_MS,
        waitingRunId: newest?.waits ? newest.runId : undefined,
      };
    },
  };
};
