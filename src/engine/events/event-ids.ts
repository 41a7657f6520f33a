/**
 * Ids of a later attempt's events start here times (attempt - 1): above everything an earlier attempt can have
 * sent, also what never reached the log. Readers ask for "after N", so gaps harm nobody.
 */
export const SEQ_PER_ATTEMPT = 100_000_000;

/** The attempt whose events have this id in their run. */
export const attemptOf = (seq: number): number => Math.floor(seq / SEQ_PER_ATTEMPT) + 1;

/** The lowest id that an event of this attempt can have in its run. */
export const firstSeqOf = (attempt: number): number => (attempt - 1) * SEQ_PER_ATTEMPT;

/**
 * Ids within a thread that an attempt has for its events: more than SEQ_PER_ATTEMPT, since the end of a run that lost its
 * last worker is told by the sweep under the ids of an attempt after that. A power of two: 2^26 turns fit into the 2^53 that
 * a number of JavaScript holds exactly.
 */
const IDS_PER_TURN = 2 ** 27;

/** An attempt, and its turn among all attempts of its thread: see engine/queue/README.md. */
export interface Turn {
  attempt: number;
  /** 0: begun by a version that knew no turns, so that its events have no place in the thread's order. */
  turn: number;
}

/**
 * What to add to the id of an event in its run to have its id in its thread, which rises over all runs of that;
 * undefined if it has none there. See docs/decisions/021-order-of-a-threads-events.md.
 */
export const threadOffset = ({ attempt, turn }: Turn): number | undefined =>
  turn === 0 ? undefined : turn * IDS_PER_TURN - (attempt - 1) * SEQ_PER_ATTEMPT;

/** The turn whose attempt has told the event with this id within its thread. */
export const turnOf = (threadSeq: number): number => Math.floor(threadSeq / IDS_PER_TURN);

/** The last id within a thread that is before all events of this turn; 0 stands before the first turn, too. */
export const beforeTurn = (turn: number): number => turn * IDS_PER_TURN - 1;
