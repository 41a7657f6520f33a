import { sql } from "kysely";
import { type Visibility, whereVisible } from "../../../access/visibility.ts";
import { composedRead } from "../../../platform/database/queries.ts";
import type { BoundedReads } from "../../../platform/database/bounded-reads.ts";
import { ThreadloomError } from "../../../platform/domain/errors.ts";
import { matchesMany } from "../../threads/search/estimate.ts";

/** Above this number, reading all unfinished runs is cheaper. */
const THREADS_AT_MOST = 20_000;

/**
 * Saves a caller with few threads from reading all unfinished runs. Undefined for all or too many threads, and after a
 * refused bounded read. Index: threads_by_metadata.
 */
export const busyThreads = async (
  database: Pick<BoundedReads, "boundedReads">,
  visibility: Visibility<"threads">,
): Promise<string[] | undefined> => {
  if (visibility.hidesNothing) return undefined;
  try {
    return await database.boundedReads(async (read) => {
      const where = sql`where ${whereVisible(visibility, "metadata")}`;
      if (await matchesMany(read, where)) return undefined;
      const rows = await composedRead<{ thread_id: string }>(
        read,
        sql`select thread_id from threadloom.threads ${where} and unfinished_runs > 0
          order by thread_id limit ${sql.lit(THREADS_AT_MOST + 1)}`,
      );
      return rows.length > THREADS_AT_MOST ? undefined : rows.map((row) => row.thread_id);
    });
  } catch (error) {
    if (error instanceof ThreadloomError) return undefined;
    throw error;
  }
};
