import type { CancelAction, MultitaskStrategy } from "../../../platform/database/tables.ts";

/** A run of the thread that has not ended. */
export interface UnfinishedRun {
  runId: string;
  status: "pending" | "running";
}

/** What creating a run does to the thread's unfinished runs. */
export type MultitaskDecision =
  /** Nothing is stored; the caller gets 409. */
  | { kind: "reject" }
  /** The new run is stored and waits its turn; each of `cancel` is ended first. */
  | { kind: "accept"; cancel: { runId: string; status: "pending" | "running"; action: CancelAction }[] };

/**
 * The per-thread rule (mission, section 3, and the hosted service's other strategies). Pure: it is given what
 * stands in the database under the thread's lock.
 *
 * `enqueue` waits behind whatever there is. `interrupt` and `rollback` end everything that has not ended, also
 * what still waits, as the hosted service does: the user has moved on.
 */
export const decideMultitask = (
  strategy: MultitaskStrategy,
  unfinished: readonly UnfinishedRun[],
): MultitaskDecision => {
  if (unfinished.length === 0 || strategy === "enqueue") return { kind: "accept", cancel: [] };
  if (strategy === "reject") return { kind: "reject" };
  return {
    kind: "accept",
    cancel: unfinished.map(({ runId, status }) => ({ runId, status, action: strategy })),
  };
};
