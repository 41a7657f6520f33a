import type { Database, Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { ClaimedRunRow, RunRow } from "../../../platform/database/tables.ts";
import type { ThreadTtl } from "../../../graphs/project/thread-expiry.ts";
import type { RunSelector } from "../attempts.ts";
import { openRuns, RUN_COLUMNS } from "../columns.ts";
import {
  ASSISTANT_VISIBLE,
  CLAIM_OF_EACH,
  CLAIM_PARAMETERS,
  CLAIMED_COLUMNS,
  createMany,
  createOne,
  GRAPH,
  GRAPH_IDS_OF_ALL,
  groupedCreation,
  METADATA_WITH_THREAD,
  RUN_PARAMETERS,
  SELECTOR,
  type Creation,
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
const CLAIMED = { ...PARAMETERS, ...CLAIM_OF_EACH };
const CONDITIONS = { ...ASSISTANT_VISIBLE, ...GRAPH_IDS_OF_ALL };
const CLAIM_WITH_THREADS = createMany<Creation & OfThread, typeof CLAIMED, typeof CONDITIONS>(
  CLAIMED,
  CONDITIONS,
  CLAIMED_COLUMNS,
  thread,
);
const WITH_THREAD = groupedCreation(CREATE_WITH_THREAD, CLAIM_WITH_THREADS);
const CREATE_WITH_THREADS = createMany(PARAMETERS, ASSISTANT_VISIBLE, SELECTOR, thread);
const CREATE_ROWS_WITH_THREADS = createMany(PARAMETERS, ASSISTANT_VISIBLE, RUN_COLUMNS, thread);

/**
 * Undefined if the thread exists, if the assistant is missing or hidden, or if the run would have to wait and
 * `mayWait` is false.
 */
export const createWithThread = (
  database: Pick<Database, "grouped">,
  rights: CreationRights,
  run: NewRun,
  claim: ImmediateClaim | undefined,
  ttl: ThreadTtl | undefined,
  mayWait = true,
): Promise<ClaimedRunRow | undefined> => database.grouped(WITH_THREAD, { rights, run, claim, mayWait, ttl });

interface NewRuns {
  rights: CreationRights;
  runs: readonly NewRun[];
  ttl: ThreadTtl | undefined;
}
const creationsOf = ({ rights, runs, ttl }: NewRuns) => ({
  rights,
  creations: runs.map((run) => ({ run, ttl })),
});

/** Leaves out runs whose thread exists, or whose assistant is missing or hidden. */
export const createWithThreads = async (transaction: Queryable, given: NewRuns): Promise<RunSelector[]> =>
  given.runs.length === 0
    ? []
    : await CREATE_WITH_THREADS.query<RunSelector>(transaction, creationsOf(given));

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

/** Like `createWithThreads`, but returns whole rows, which include the values of the assistants. */
export const createRowsWithThreads = async (transaction: Queryable, given: NewRuns): Promise<RunRow[]> => {
  if (given.runs.length === 0) return [];
  const rows = await CREATE_ROWS_WITH_THREADS.query<RunRow>(transaction, creationsOf(given));
  return openRuns(transaction, rows);
};
