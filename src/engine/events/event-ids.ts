/**
 * An attempt's ids start above all ids of earlier attempts, including unlogged ones. Readers ask for "after
 * N", so gaps do no harm.
 */
export const SEQ_PER_ATTEMPT = 100_000_000;

export const attemptOf = (seq: number): number => Math.floor(seq / SEQ_PER_ATTEMPT) + 1;

/**
 * More than SEQ_PER_ATTEMPT, because the sweep publishes the end of a lost run under the ids of the next
 * attempt. 2^26 turns fit into a safe integer (2^53).
 */
const IDS_PER_TURN = 2 ** 27;

/** See engine/queue/README.md. */
export interface Turn {
  attempt: number;
  /** 0: begun by a version without turns, so its events have no place in the thread's order. */
  turn: number;
}

/**
 * The difference between an event's id in its thread and in its run; undefined without a turn. See
 * docs/decisions/021-order-of-a-threads-events.md.
 */
export const threadOffset = ({ attempt, turn }: Turn): number | undefined =>
  turn === 0 ? undefined : turn * IDS_PER_TURN - (attempt - 1) * SEQ_PER_ATTEMPT;

export const turnOf = (threadSeq: number): number => Math.floor(threadSeq / IDS_PER_TURN);

/** The last id within a thread before this turn. */
export const beforeTurn = (turn: number): number => turn * IDS_PER_TURN - 1;
