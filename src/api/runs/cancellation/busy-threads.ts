import type { Visibility } from "../../../access/visibility.ts";
import type { BoundedReads } from "../../../platform/database/bounded-reads.ts";
import { matchesMany } from "../../threads/search/estimate.ts";

/**
 * The visible threads that have unfinished runs, so that everybody else's runs are not read for a caller who has few threads.
 * Undefined: all threads, or so many that the caller's runs are found by reading what is unfinished.
 * Rejects like `boundedReads`. Index: threads_by_metadata.
 */
export const busyThreads = async (
  database: Pick<BoundedReads, "boundedReads">,
  visibility: Visibility<"threads">,
): Promise<string[] | undefined> => {
  if (visibility.hidesNothing) return undefined;
  return await database.boundedReads(async (read) => {
    const values: unknown[] = [];
    const where = `where ${visibility.condition("metadata", values)}`;
    if (await matchesMany(read, { where, values })) return undefined;
    const rows = await read<{ thread_id: string }>(
      `select thread_id from threadloom.threads ${where} and unfinished_runs > 0 order by thread_id`,
      values,
    );
    return rows.map((row) => row.thread_id);
  });
};
