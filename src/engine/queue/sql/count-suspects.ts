import type { Queryable } from "../../../platform/database/database.ts";

/** Index: runs_pending_suspects, nearly always empty. */
const COUNT_SUSPECTS = `select (select count(*) from threadloom.runs r
  where r.status = 'pending' and r.lost_attempts > 0 and r.lost_attempts >= $1)::int as runs`;

export const countSuspects = async (queryable: Queryable, suspectFrom: number): Promise<number> => {
  const [row] = await queryable.query<{ runs: number }>(COUNT_SUSPECTS, [suspectFrom]);
  return row?.runs ?? 0;
};
