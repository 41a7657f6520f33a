import type { Visibility, Within } from "../../access/visibility.ts";
import type { Fragment } from "../../platform/database/statement.ts";

/** A run is visible if its thread is. Index: threads_pkey. */
export function runVisible(visibility: Visibility<"threads">): Fragment;
export function runVisible(visibility: Visibility<"threads">, values: unknown[]): string;
export function runVisible(visibility: Visibility<"threads">, values?: unknown[]): Fragment | string {
  const within: Within = (condition) => `exists (
      select from threadloom.threads thread where thread.thread_id = r.thread_id and (${condition}))`;
  return values === undefined
    ? visibility.on("thread.metadata", within)
    : visibility.condition("thread.metadata", values, within);
}
