import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import { openRuns } from "../columns.ts";
import { CLAIM_PARAMETERS, taking, type Claim } from "./claim.ts";
import { IS_NEXT_OF_THREAD } from "./next-of-thread.ts";

interface SuspectClaim extends Claim {
  /** Minimum seconds since the run lost its process. */
  restSeconds: number;
}

const SUSPECT_PARAMETERS = {
  ...CLAIM_PARAMETERS,
  restSeconds: ["float8", (claim: SuspectClaim) => claim.restSeconds],
} as const;

const nextSuspects = (
  sql: Readonly<Record<keyof typeof SUSPECT_PARAMETERS, string>>,
): string => `next as (select r.run_id from threadloom.runs r
  where r.status = 'pending' and r.available_at <= now() and r.lost_attempts > 0 and r.lost_attempts >= ${sql.suspectFrom}
    and r.graph_id = any(${sql.graphIds}) and r.updated_at <= now() - make_interval(secs => ${sql.restSeconds})
    and ${IS_NEXT_OF_THREAD}
  order by r.created_at, r.run_id
  limit ${sql.limit}
  for update skip locked)`;

/**
 * pending → running, for runs with a single attempt left, which `claim` skips. Index: runs_pending_suspects.
 */
const CLAIM_SUSPECTS = statement(SUSPECT_PARAMETERS, (sql) => taking(nextSuspects(sql), sql));

/** Throws like `claim`. */
export const claimSuspects = async (queryable: Queryable, claim: SuspectClaim): Promise<ClaimedRunRow[]> =>
  openRuns(queryable, await CLAIM_SUSPECTS.query<ClaimedRunRow>(queryable, claim));
