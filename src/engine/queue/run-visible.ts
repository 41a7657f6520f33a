import type { Visibility } from "../../access/visibility.ts";
import type { Fragment } from "../../platform/database/statement.ts";

/** A run is visible if its thread is. Index: threads_pkey. */
export const runVisible = (visibility: Visibility<"threads">): Fragment =>
  visibility.on(
    "thread.metadata",
    (condition) => `exists (
      select from threadloom.threads thread where thread.thread_id = r.thread_id and (${condition}))`,
  );
