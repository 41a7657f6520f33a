import type { CancelAction, MultitaskStrategy } from "../../../platform/database/tables.ts";

export interface UnfinishedRun {
  runId: string;
  status: "pending" | "running";
}

export type MultitaskDecision =
  /** Nothing is stored; the caller gets 409. */
  | { kind: "reject" }
  /** The run is stored as pending; the runs of `cancel` are ended first. */
  | { kind: "accept"; cancel: { runId: string; status: "pending" | "running"; action: CancelAction }[] };

/**
 * The multitask rule of the hosted service. It is pure: the caller reads `unfinished` under the thread's lock.
 * `interrupt` and `rollback` also end pending runs, as the hosted service does.
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
