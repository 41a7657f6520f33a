import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import { EXECUTED_COLUMNS, openRuns } from "../columns.ts";

/** Index: runs_one_begun_per_thread (all running runs). */
const LIST_UNKNOWN = statement(
  { workerId: "uuid", known: "uuid[]" },
  (sql) => `select ${EXECUTED_COLUMNS} from threadloom.runs r where r.status = 'running' and r.worker_id
    = ${sql.workerId}
    and not r.run_id = any(${sql.known}) and r.updated_at < now() - interval '1 second'
  order by r.created_at, r.run_id`,
);

/**
 * Runs whose claims were committed but whose responses were lost. Excludes the last second: those responses
 * may still arrive.
 */
export const listUnknown = async (
  queryable: Queryable,
  workerId: string,
  known: readonly string[],
): Promise<ClaimedRunRow[]> =>
  openRuns(queryable, await LIST_UNKNOWN.query<ClaimedRunRow>(queryable, { workerId, known }));
