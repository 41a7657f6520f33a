/**
 * Named points in the life of a run at which a test kills the process (test/fixtures/faulty-server.ts). Production
 * passes `NO_FAULTS`.
 */
export type FaultPoint =
  /** The run is stored as running here; the attempt has not begun. */
  | "after-claim"
  /** The run's channel is open; `metadata` is not emitted. */
  | "before-first-event"
  /** A step's checkpoint is being stored or stored; its events are not in the log. */
  | "between-checkpoint-and-event"
  /** The graph has ended and its state is stored; the run's end is not. */
  | "before-finish"
  /** The end is stored, but not announced. */
  | "after-finish"
  /** Crons are locked and their runs inserted; the transaction is not committed. */
  | "before-firing"
  /** The runs of crons are committed, but not announced to workers. */
  | "after-firing"
  /** A webhook's delivery is claimed; nothing is sent. */
  | "before-sending"
  /** The receiver has answered; the answer is not stored. */
  | "after-sending";

export interface Faults {
  reached(point: FaultPoint): void;
}

export const NO_FAULTS: Faults = { reached: () => undefined };
