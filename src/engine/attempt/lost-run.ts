import type { RunRow } from "../../platform/database/tables.ts";
import type { GraphResult } from "../executors/executor.ts";

export const CONTINUES = "a run lost its process; it continues from its last checkpoint";
export const CONTINUES_ALONE = `${CONTINUES}, in a process of its own`;

/** `how`: how the graph process ended, as the end of a sentence. */
export const resultOfLost = (
  { cancel_action, lost_attempts }: Pick<RunRow, "cancel_action" | "lost_attempts">,
  how?: string,
): GraphResult => {
  if (cancel_action !== null) return { kind: "stopped", reason: { kind: "cancel", action: cancel_action } };
  const attempts = lost_attempts + 1;
  const last = how === undefined ? "" : ` The last one ${how}.`;
  const error = new Error(
    `The run was given up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: each lost its process before it ended.${last}`,
  );
  return { kind: "failed", error: Object.assign(error, { name: "MaxAttemptsError" }) };
};
