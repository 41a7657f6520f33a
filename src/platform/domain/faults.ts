/** Points at which a test kills the process (test/fixtures/faulty-server.ts). */
export type FaultPoint =
  /** The attempt has not begun. */
  | "after-claim"
  /** `metadata` is not emitted. */
  | "before-first-event"
  /** A step's events are not in the log. */
  | "between-checkpoint-and-event"
  /** The state is stored; the run's end is not. */
  | "before-finish"
  /** The end is stored, but not announced. */
  | "after-finish"
  /** The transaction is not committed. */
  | "before-firing"
  /** Committed, but not announced to workers. */
  | "after-firing"
  /** A delivery is claimed; nothing is sent. */
  | "before-sending"
  /** The receiver's answer is not stored. */
  | "after-sending";

export interface Faults {
  reached(point: FaultPoint): void;
}

export const NO_FAULTS: Faults = { reached: () => undefined };
