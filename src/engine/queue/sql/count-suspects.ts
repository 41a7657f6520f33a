import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

/** Index: runs_pending_suspects, nearly always empty. */
const COUNT_SUSPECTS = statement(
  { suspectFrom: "integer" },
  (sql) => `select (select count(*) from threadloom.runs r
  where r.status = 'pending' and r.lost_attempts > 0 and r.lost_attempts >= ${sql.suspectFrom})::int as runs`,
);

export const countSuspects = async (queryable: Queryable, suspectFrom: number): Promise<number> => {
  const [row] = await COUNT_SUSPECTS.query<{ runs: number }>(queryable, { suspectFrom });
  return row!.runs;
};
