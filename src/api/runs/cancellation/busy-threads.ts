import type { Visibility } from "../../../access/visibility.ts";
import type { BoundedReads } from "../../../platform/database/bounded-reads.ts";
import { ThreadloomError } from "../../../platform/domain/errors.ts";
import { matchesMany } from "../../threads/search/estimate.ts";

/** Above this number, reading all unfinished runs is cheaper. */
const THREADS_AT_MOST = 20_000;

/**
 * Saves a caller with few threads from reading the runs of all others. Undefined: all threads, too many, or a refused
 * bounded read, since the caller has no filter to narrow. Index: threads_by_metadata.
 */
export const busyThreads = async (
  database: Pick<BoundedReads, "boundedReads">,
  visibility: Visibility<"threads">,
): Promise<string[] | undefined> => {
  if (visibility.hidesNothing) return undefined;
  try {
    return await database.boundedReads(async (read) => {
      const values: unknown[] = [];
      const where = `where ${visibility.condition("metadata", values)}`;
      if (await matchesMany(read, { where, values })) return undefined;
      const rows = await read<{ thread_id: string }>(
        `select thread_id from threadloom.threads ${where} and unfinished_runs > 0 order by thread_id limit ${THREADS_AT_MOST + 1}`,
        values,
      );
      return rows.length > THREADS_AT_MOST ? undefined : rows.map((row) => row.thread_id);
    });
  } catch (error) {
    if (error instanceof ThreadloomError) return undefined;
    throw error;
  }
};
