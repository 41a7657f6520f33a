import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { ClaimedRunRow, RunRow } from "../../../platform/database/tables.ts";
import type { ThreadTtl } from "../../../graphs/project/expiry.ts";
import { openRuns } from "../columns.ts";
import {
  ASSISTANT_VISIBLE,
  CLAIM_PARAMETERS,
  createMany,
  createOne,
  GRAPH,
  METADATA_WITH_THREAD,
  RUN_PARAMETERS,
  type CreationRights,
  type ImmediateClaim,
  type NewRun,
} from "./create.ts";

interface OfThread {
  run: NewRun;
  /** Undefined: the thread never expires. */
  ttl: ThreadTtl | undefined;
}

const PARAMETERS = {
  ...RUN_PARAMETERS,
  metadata: METADATA_WITH_THREAD,
  // A thread that is deleted with its run never expires.
  ttlStrategy: ["text", ({ run, ttl }: OfThread) => (run.deleteThread ? null : (ttl?.strategy ?? null))],
  ttlMinutes: ["float8", ({ run, ttl }: OfThread) => (run.deleteThread ? null : (ttl?.minutes ?? null))],
} as const;

/**
 * → running, or pending without a slot: like `createOnIdleThread`, on a new thread. Indexes: threads_pkey,
 * assistants_pkey, checkpoints_pkey.
 */
const thread = (
  sql: Readonly<Record<keyof typeof PARAMETERS, string>>,
): string => `insert into threadloom.threads (thread_id, unfinished_runs, turns, status, metadata, config, ttl_strategy, ttl_minutes, expires_at)
  select ${sql.threadId}, 1, 1, 'busy', ${sql.metadata} || ${GRAPH}, coalesce(${sql.keptConfig}, '{}'), ${sql.ttlStrategy},
    ${sql.ttlMinutes}, now() + ${sql.ttlMinutes} * interval '1 minute'
  from assistant a
  on conflict (thread_id) do nothing
  returning thread_id, metadata, config, '{}'::jsonb as metadata_before, '{}'::json as config_before,
    true as state_unchanged, false as behind, turns as turn`;

const CREATE_WITH_THREAD = statement({ ...PARAMETERS, ...CLAIM_PARAMETERS, ...ASSISTANT_VISIBLE }, (sql) =>
  createOne(sql, thread(sql)),
);
const CREATE_WITH_THREADS = createMany(PARAMETERS, ASSISTANT_VISIBLE, thread);

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
  const creation = { rights, run, claim, mayWait, ttl };
  return openRuns(queryable, await CREATE_WITH_THREAD.query<ClaimedRunRow>(queryable, creation))[0];
};

interface NewRuns {
  rights: CreationRights;
  runs: readonly NewRun[];
  ttl: ThreadTtl | undefined;
}

/** Leaves out runs whose thread exists, or whose assistant is missing or hidden. */
export const createWithThreads = async (
  transaction: Queryable,
  { rights, runs, ttl }: NewRuns,
): Promise<RunRow[]> => {
  if (runs.length === 0) return [];
  const creations = runs.map((run) => ({ run, ttl }));
  return openRuns(transaction, await CREATE_WITH_THREADS.query<RunRow>(transaction, { rights, creations }));
};

const EXISTING = statement(
  { threadIds: "uuid[]" },
  (sql) => `select thread_id from threadloom.threads where thread_id = any(${sql.threadIds})`,
);

/** Those of the threads that exist. Index: threads_pkey. */
export const existingThreads = async (
  transaction: Queryable,
  threadIds: readonly string[],
): Promise<ReadonlySet<string>> => {
  if (threadIds.length === 0) return new Set();
  const rows = await EXISTING.query<{ thread_id: string }>(transaction, { threadIds });
  return new Set(rows.map((row) => row.thread_id));
};
