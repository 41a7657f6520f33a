import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type { ThreadTtl } from "../../../graphs/project/thread-expiry.ts";
import { openRuns } from "../columns.ts";
import {
  assistant,
  CREATE_PARAMETERS,
  GRAPH,
  insertRun,
  ENCRYPTED,
  type Creation,
  type CreationRights,
  type ImmediateClaim,
  type NewRun,
} from "./create.ts";

interface CreationOfThread extends Creation {
  /** Undefined: the thread never expires, or is deleted with its run. */
  ttl: ThreadTtl | undefined;
}

const PARAMETERS = {
  ...CREATE_PARAMETERS,
  metadata: ["jsonb", CREATE_PARAMETERS.metadata[1], ENCRYPTED.threadMetadata],
  ttlStrategy: ["text", ({ ttl }: CreationOfThread) => ttl?.strategy ?? null],
  ttlMinutes: ["float8", ({ ttl }: CreationOfThread) => ttl?.minutes ?? null],
} as const;

/**
 * → running, or pending without a slot: `createOnIdleThread` on a new thread. Indexes: threads_pkey,
 * assistants_pkey, checkpoints_pkey.
 */
const CREATE_WITH_THREAD = statement(
  PARAMETERS,
  (sql) => `with ${assistant(sql)},
thread as (
  insert into threadloom.threads (thread_id, unfinished_runs, turns, status, metadata, config, ttl_strategy, ttl_minutes, expires_at)
  select ${sql.threadId}, 1, 1, 'busy', ${sql.metadata} || ${GRAPH}, coalesce(${sql.keptConfig}, '{}'), ${sql.ttlStrategy},
    ${sql.ttlMinutes}, now() + ${sql.ttlMinutes} * interval '1 minute'
  from assistant a
  on conflict (thread_id) do nothing
  returning metadata, config, '{}'::jsonb as before, '{}'::jsonb as config_before, true as settled, false as behind, turns as turn)
${insertRun(sql)}`,
);

/**
 * Undefined if the thread exists, if the assistant is missing or hidden, or if the run would have to wait and
 * `mayWait` is false.
 */
export const createWithThread = async (
  queryable: Queryable,
  rights: CreationRights,
  run: NewRun,
  claim: ImmediateClaim | undefined,
  ttl: ThreadTtl | undefined,
  mayWait = true,
): Promise<ClaimedRunRow | undefined> => {
  const creation = { rights, run, claim, mayWait, ttl: run.deleteThread ? undefined : ttl };
  return openRuns(queryable, await CREATE_WITH_THREAD.query<ClaimedRunRow>(queryable, creation))[0];
};
