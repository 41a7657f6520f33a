import type { CancelAction, MultitaskStrategy } from "../../../platform/database/tables.ts";

export interface UnfinishedRun {
  runId: string;
  status: "pending" | "running";
}

export type MultitaskDecision =
  | { kind: "reject" }
  /** The runs of `cancel` end before the new one starts. */
  | { kind: "accept"; cancel: { runId: string; status: "pending" | "running"; action: CancelAction }[] };

/**
 * The multitask rule of the hosted service, which also ends pending runs for `interrupt` and `rollback`. The caller
 * reads `unfinished` under the thread's lock.
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
