import type { Visibility } from "../../access/visibility.ts";

/** A run is visible if its thread is. Index: threads_pkey. */
export const runVisible = (visibility: Visibility<"threads">, values: unknown[]): string =>
  visibility.condition(
    "thread.metadata",
    values,
    (condition) => `exists (
      select from threadloom.threads thread where thread.thread_id = r.thread_id and (${condition}))`,
  );
