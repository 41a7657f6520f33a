/**
 * The ids of an attempt start at this times (attempt - 1), above all ids of earlier attempts, including
 * unlogged ones. Readers ask for "after N", so gaps do no harm.
 */
export const SEQ_PER_ATTEMPT = 100_000_000;

/** The attempt of an event id. */
export const attemptOf = (seq: number): number => Math.floor(seq / SEQ_PER_ATTEMPT) + 1;

/** The first event id of an attempt. */
export const firstSeqOf = (attempt: number): number => (attempt - 1) * SEQ_PER_ATTEMPT;

/**
 * Event ids per attempt within a thread. More than SEQ_PER_ATTEMPT, because the sweep publishes the end of a
 * lost run under the ids of the next attempt. 2^26 turns fit into a safe integer (2^53).
 */
const IDS_PER_TURN = 2 ** 27;

/** An attempt and its turn in the thread: see engine/queue/README.md. */
export interface Turn {
  attempt: number;
  /** 0: begun by a version without turns, so its events have no place in the thread's order. */
  turn: number;
}

/**
 * Add this to an event's id in its run to get the id in its thread; undefined without a turn. See
 * docs/decisions/021-order-of-a-threads-events.md.
 */
export const threadOffset = ({ attempt, turn }: Turn): number | undefined =>
  turn === 0 ? undefined : turn * IDS_PER_TURN - (attempt - 1) * SEQ_PER_ATTEMPT;

/** The turn of an event id within a thread. */
export const turnOf = (threadSeq: number): number => Math.floor(threadSeq / IDS_PER_TURN);

/** The last id within a thread before all events of this turn; the first turn is 1, so 0 precedes all. */
export const beforeTurn = (turn: number): number => turn * IDS_PER_TURN - 1;
