import type { Visibility } from "../../access/visibility.ts";

/**
 * The condition that a run, the row `r` of the statement, is visible: it is with its thread, whose metadata decide. See
 * `Visibility.condition`. Index: threads_pkey.
 */
export const runVisible = (visibility: Visibility<"threads">, values: unknown[]): string =>
  visibility.condition(
    "thread.metadata",
    values,
    (condition) => `exists (
      select from threadloom.threads thread where thread.thread_id = r.thread_id and (${condition}))`,
  );
