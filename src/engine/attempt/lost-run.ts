import type { RunRow } from "../../platform/database/tables.ts";
import type { GraphResult } from "../executors/executor.ts";

/** What becomes of a suspect, as the end of a sentence: others like it may be before it. */
export const WAITS_ALONE = "it may have ended it, and waits to be executed alone";

/**
 * The end of a run whose worker is gone and that must not be tried again: it was to be cancelled, or this was its last
 * attempt. `how` the worker ended, as the end of a sentence, if that is known.
 */
export const resultOfLost = (
  { cancel_action, lost_attempts }: Pick<RunRow, "cancel_action" | "lost_attempts">,
  how?: string,
): GraphResult => {
  if (cancel_action !== null) return { kind: "stopped", reason: { kind: "cancel", action: cancel_action } };
  const attempts = lost_attempts + 1;
  const last = how === undefined ? "" : ` The last one ${how}.`;
  const error = new Error(
    `The run was given up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: each lost its worker before it ended.${last}`,
  );
  return { kind: "failed", error: Object.assign(error, { name: "MaxAttemptsError" }) };
};
