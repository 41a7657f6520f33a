import { beforeTurn, turnOf } from "../../../engine/events/event-ids.ts";
import type { StreamingRepository } from "../repository.ts";
import { JUST_NOW_MS } from "./connections.ts";
import { attemptRunning, END_EVENTS_AT_MOST, lastSeqOf } from "./ends.ts";

/** Where a connection begins, and what of the runs before it is told. */
export interface Opening {
  /** The id within the thread after which events are read. */
  after: number;
  /** Nothing is told up to this id. */
  since: number;
  /** Runs up to this turn had ended when the connection was opened. 0: it makes no difference, all is told after `since`. */
  endedTurn: number;
  /**
   * Of those runs the one that began last, if none waits since: its beginning and end are told, and the ends of runs that were cancelled
   * after that before they began.
   */
  newestTurn: number | undefined;
  /** That run ended so lately that the client may have started it himself. */
  hasEndedJustNow: boolean;
  /** The newest run, if it waits for an answer: its question is told in its turn, also where none of its events can be read. */
  waitingRunId: string | undefined;
}

/** Of a thread that has not run yet: all is told. */
export const NOTHING_YET: Opening = {
  after: 0,
  since: 0,
  endedTurn: 0,
  newestTurn: undefined,
  hasEndedJustNow: false,
  waitingRunId: undefined,
};

/** Bytes of events that are told again to a client that names no event it has. */
const REPLAYED_BYTES = 2 * 1024 * 1024;

const SYNTHESIZED = /^synth:([0-9a-f-]{36}):(.+)$/;

/**
 * The rule of the replay: docs/decisions/027-replay-and-ends-of-event-streaming.md. It asks for nothing that a server
 * remembers, so that it is the same on every replica and after every restart.
 */
export const createOpenings = (repository: StreamingRepository) => {
  const afterSeq = async (threadId: string, since: number): Promise<Opening> => {
    const newest = await repository.newestRun(threadId);
    const last = lastSeqOf(turnOf(since));
    // In the middle of a run's end: what it asked for stands among its events, so these are read once more.
    const isWithinEnd = since < last && since > last - END_EVENTS_AT_MOST;
    const after = isWithinEnd ? beforeTurn(turnOf(since)) : since;
    return { ...NOTHING_YET, after, since, waitingRunId: newest?.waits ? newest.runId : undefined };
  };

  return {
    afterSeq,

    /** After an event that is named by its id; undefined if it is none of this thread. */
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
      // After these nothing follows. Of what came before them some may come twice, which the ids tell.
      const isLast = what === "completed" || what === "failed";
      return await afterSeq(threadId, isLast ? last : last - END_EVENTS_AT_MOST + 1);
    },

    /** From the beginning, as far as that is kept. */
    async fromBeginning(threadId: string): Promise<Opening> {
      const [newest, first] = await Promise.all([
        repository.newestRun(threadId),
        repository.replayStart(threadId, REPLAYED_BYTES),
      ]);
      const isOver = newest !== undefined && newest.status !== "pending" && newest.status !== "running";
      // While the newest one goes on, or waits for its next attempt, it is that one's end which is to come.
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
