/**
 * Named points in the life of a run at which a test lets the process die. In production nothing listens; the fault
 * tests pass an object that kills the process at the n-th arrival (test/fixtures/faulty-server.ts).
 */
export type FaultPoint =
  /** The run is stored as running here; nothing of it has begun. */
  | "after-claim"
  /** The run's channel is open; its `metadata` is not emitted. */
  | "before-first-event"
  /** A step's checkpoint is on its way or stored; its events are not in the log. */
  | "between-checkpoint-and-event"
  /** The graph has ended and everything of it is stored, but not that it has. */
  | "before-finish"
  /** The end is stored; nobody was told. */
  | "after-finish"
  /** Crons are held and their runs are stored, none of it committed. */
  | "before-firing"
  /** The runs of crons are committed; no worker was told. */
  | "after-firing"
  /** A webhook's delivery is taken; nothing is sent. */
  | "before-sending"
  /** The receiver has answered; it is not stored that it has. */
  | "after-sending";

export interface Faults {
  reached(point: FaultPoint): void;
}

export const NO_FAULTS: Faults = { reached: () => undefined };
