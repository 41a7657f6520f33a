import { LRUCache } from "lru-cache";
import { beforeTurn, turnOf } from "../../../engine/events/event-ids.ts";
import type { StreamingRepository } from "../repository.ts";
import { END_EVENTS_AT_MOST, lastSeqOf } from "./ends.ts";

/** A client opens its connection for data within this time after its run began. */
const OPENED_WITHIN_MS = 2_000;
/** An interrupt waits this long for connections that lack the events before it. */
const TAKEN_WITHIN_MS = 2_000;
/** A client may read its two sockets in any order. The head start lasts as long as the opening of the other socket. */
const HEAD_START_MS = { least: 25, most: 1_000 };
const FLUSH_POLL_MS = 5;
/** A client that connects later than this after a run's end did not start that run. */
const JUST_NOW_MS = 2_000;

export interface Attendance {
  /** Other connections of the client carry the data. */
  isWatcher: boolean;
  /** The operating system has taken all data. */
  hasFlushed(): boolean;
  /** By `performance.now()`; the connection may have joined later. */
  openedAt: number;
}

interface ThreadConnections {
  places: Set<Place>;
  wakers: Set<() => void>;
  begun: { turn: number; at: number };
}

const change = async (wakers: Set<() => void>, waitMs: number, signal: AbortSignal): Promise<void> =>
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      wakers.delete(end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, waitMs);
    wakers.add(end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });

/** The turn of each thread whose end was sent just now. */
type SentEnds = LRUCache<string, number>;

/** A connection among those of its thread. */
export class Place {
  #turn = 0;
  /** From the run's beginning to the opening of the connection; 0 outside `OPENED_WITHIN_MS`. */
  readonly #openingMs: number;

  constructor(
    private readonly thread: ThreadConnections,
    private readonly attendance: Attendance,
    private readonly threadId: string,
    private readonly sentEnds: SentEnds,
    private readonly forget: () => void,
  ) {
    const openingMs = attendance.openedAt - thread.begun.at;
    this.#openingMs = openingMs > 0 && openingMs < OPENED_WITHIN_MS ? openingMs : 0;
    thread.places.add(this);
    this.#wake();
  }

  /** The connection reads this turn's first event. */
  began(turn: number): void {
    if (turn > this.thread.begun.turn) this.thread.begun = { turn, at: performance.now() };
  }

  /** The connection has received this turn's events. */
  reached(turn: number): void {
    this.#turn = Math.max(this.#turn, turn);
    this.#wake();
  }

  /** The connection is about to receive this turn's end. */
  endSent(turn: number): void {
    if (!this.attendance.isWatcher) this.sentEnds.set(this.threadId, turn);
  }

  /**
   * Whether no connection has received this end, so that the run's own client may still come. Another open connection
   * may belong to an earlier session.
   */
  awaitsEnd(turn: number): boolean {
    return (this.sentEnds.get(this.threadId) ?? -1) < turn;
  }

  /**
   * A watcher waits until the other connections have had time to take the data. See
   * docs/decisions/040-when-a-question-is-sent.md.
   */
  async whenDataTaken(turn: number, signal: AbortSignal): Promise<void> {
    if (!this.attendance.isWatcher) return;
    const takenBy = performance.now() + TAKEN_WITHIN_MS;
    for (;;) {
      const reading = this.#others();
      const until = reading.length > 0 ? takenBy : this.thread.begun.at + OPENED_WITHIN_MS;
      const left = until - performance.now();
      if (left <= 0 || signal.aborted) return;
      const isGiven = reading.length > 0 && reading.every((other) => other.#turn >= turn);
      if (isGiven && reading.every(({ attendance }) => attendance.hasFlushed())) break;
      await change(this.thread.wakers, isGiven ? FLUSH_POLL_MS : left, signal);
    }
    const openings = this.#others().map((other) => other.#openingMs);
    const headStart = Math.min(Math.max(HEAD_START_MS.least, ...openings), HEAD_START_MS.most);
    await change(new Set(), headStart, signal);
  }

  leave(): void {
    const { places } = this.thread;
    if (places.delete(this) && places.size === 0) this.forget();
    this.#wake();
  }

  #others(): Place[] {
    return [...this.thread.places].filter((other) => other !== this && !other.attendance.isWatcher);
  }

  #wake(): void {
    for (const waker of this.thread.wakers) waker();
  }
}

/**
 * Python's SDK stops reading when its lifecycle connection receives an interrupt. Earlier data on another connection
 * got lost in 7 of 100 turns.
 */
export const createAudiences = () => {
  const audiences = new Map<string, ThreadConnections>();
  const sentEnds: SentEnds = new LRUCache({ ttl: JUST_NOW_MS, ttlAutopurge: true });

  return {
    join(threadId: string, attendance: Attendance): Place {
      const begun = { turn: 0, at: performance.now() };
      const thread = audiences.get(threadId) ?? { places: new Set(), wakers: new Set(), begun };
      audiences.set(threadId, thread);
      return new Place(thread, attendance, threadId, sentEnds, () => audiences.delete(threadId));
    },
  };
};

export type Connections = ReturnType<typeof createAudiences>;

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

/**
 * The rule of the replay: docs/decisions/027-replay-and-ends-of-event-streaming.md. Every replica gives the same
 * replay, without memory.
 */
export const openingOf = async (
  repository: StreamingRepository,
  threadId: string,
  since: number | undefined,
): Promise<Opening> => {
  const newest = await repository.newestRun(threadId);
  const waitingRunId = newest?.waits ? newest.runId : undefined;
  if (since !== undefined) {
    const last = lastSeqOf(turnOf(since));
    // The interrupts are among the run's events, so these are read again.
    const isWithinEnd = since < last && since > last - END_EVENTS_AT_MOST;
    return { ...NOTHING_YET, after: isWithinEnd ? beforeTurn(turnOf(since)) : since, since, waitingRunId };
  }
  const first = await repository.replayStart(threadId, REPLAYED_BYTES);
  const isOver = newest !== undefined && newest.status !== "pending" && newest.status !== "running";
  const isSent = isOver && newest.unfinished === 0;
  return {
    after: first === undefined ? Math.max(0, beforeTurn(newest?.turn ?? 0)) : first - 1,
    since: 0,
    // An unfinished run's end is still to come.
    endedTurn: newest === undefined ? 0 : isOver ? newest.lastTurn : newest.turn - 1,
    newestTurn: isSent ? newest.turn : undefined,
    hasEndedJustNow: isSent && newest.endedAgo < JUST_NOW_MS,
    waitingRunId,
  };
};
