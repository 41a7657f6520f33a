import type { Queryable } from "../../../platform/database/database.ts";
import type { Cipher } from "../../../platform/encryption/cipher.ts";
import type { ThreadTtl } from "../../../graphs/project/thread-expiry.ts";
import type { RunSelector } from "../attempts.ts";
import {
  GRAPH,
  keptConfig,
  mergedColumns,
  ENCRYPTED,
  WITH_GRAPH,
  type CreationRights,
  type NewRun,
} from "./create.ts";

/* One statement per run took 2 s for 100 runs while the same process executed runs. */

/** For each parameter array: its type, its column name, and the value of each run. */
const ASKED: readonly (readonly [
  type: string,
  column: string,
  valueOf: (run: NewRun) => unknown,
  encryptedOf?: (asked: { run: NewRun }, cipher: Cipher) => unknown,
])[] = [
  ["uuid", "run_id", (run) => run.runId],
  ["uuid", "thread_id", (run) => run.threadId],
  ["uuid", "assistant_id", (run) => run.assistantId],
  ["jsonb", "metadata", (run) => JSON.stringify(run.metadata), ENCRYPTED.metadata],
  ["jsonb", "config", (run) => JSON.stringify(run.config), ENCRYPTED.config],
  ["jsonb", "context", (run) => JSON.stringify(run.context), ENCRYPTED.context],
  [
    "jsonb",
    "kept_config",
    ({ keptConfig: kept }) => (kept === undefined ? null : JSON.stringify(kept)),
    ENCRYPTED.keptConfig,
  ],
  [
    "jsonb",
    "auth_user",
    ({ authUser }) => (authUser === null ? null : JSON.stringify(authUser)),
    ENCRYPTED.authUser,
  ],
  ["text", "caller", (run) => run.caller],
  ["text", "kwargs", (run) => run.kwargs, ENCRYPTED.kwargs],
  ["text", "multitask_strategy", (run) => run.multitaskStrategy],
  ["boolean", "resumable", (run) => run.resumable],
  ["boolean", "delete_thread", (run) => run.deleteThread],
  ["text", "webhook", (run) => run.webhook, ENCRYPTED.webhook],
];

/** `a`: see `assistant` in create.ts. */
const asked = (visible: string): string => `asked as (
  select n.*, a.graph_id, a.metadata as a_metadata, a.config as a_config, a.context as a_context
  from unnest(${ASKED.map(([type], index) => `$${index + 1}::${type}[]`).join(", ")})
    as n(${ASKED.map(([, column]) => column).join(", ")})
  join threadloom.assistants a on a.assistant_id = n.assistant_id where ${visible})`;

/** `thread`: see `insertRun` in create.ts. */
const INSERT = `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, metadata, config, context, kwargs,
    multitask_strategy, resumable, delete_thread, webhook, available_at, behind, replaced_metadata, replaced_config, auth_user, caller)
  select n.run_id, n.thread_id, n.assistant_id, n.graph_id, 'pending',
    ${mergedColumns({ metadata: "n.metadata", config: "n.config", context: "n.context" })},
    n.kwargs::json, n.multitask_strategy, n.resumable, n.delete_thread, n.webhook, now(), t.behind,
    case when not t.before @> ${GRAPH} then jsonb_strip_nulls(
      jsonb_build_object('graph_id', t.before -> 'graph_id', 'assistant_id', t.before -> 'assistant_id')) end,
    case when n.kept_config is not null and t.config <> t.config_before then t.config_before end, n.auth_user, n.caller
  from asked n join thread t on t.thread_id = n.thread_id cross join lateral (
    select n.graph_id, n.assistant_id, n.a_metadata as metadata, n.a_config as config, n.a_context as context) a
  returning run_id as "runId", thread_id as "threadId"`;

const [TTL_STRATEGY, TTL_MINUTES] = [`$${ASKED.length + 1}::text`, `$${ASKED.length + 2}::float8`];

/** → pending, each run on a new thread. Indexes: assistants_pkey, threads_pkey. */
const createThreadlessOf = (visible: string): string => `with ${asked(visible)},
thread as (
  insert into threadloom.threads (thread_id, unfinished_runs, turns, status, metadata, config, ttl_strategy, ttl_minutes, expires_at)
  select a.thread_id, 1, 1, 'busy', a.metadata || ${GRAPH}, coalesce(a.kept_config, '{}'),
    case when not a.delete_thread then ${TTL_STRATEGY} end, case when not a.delete_thread then ${TTL_MINUTES} end,
    case when not a.delete_thread then now() + ${TTL_MINUTES} * interval '1 minute' end
  from asked a
  returning thread_id, metadata, config, '{}'::jsonb as before, '{}'::jsonb as config_before, false as behind)
${INSERT}`;

/**
 * → pending, each run on an existing thread that may be busy. The caller holds the threads' locks and names
 * each thread once. Indexes: assistants_pkey, threads_pkey, runs_one_running_per_thread,
 * runs_pending_of_thread.
 */
const createOnThreadsOf = (visible: string): string => `with ${asked(visible)},
thread as (
  update threadloom.threads t set unfinished_runs = t.unfinished_runs + 1, turns = t.turns + 1, status = 'busy',
    updated_at = now(), version = t.version + 1, metadata = ${WITH_GRAPH}, config = ${keptConfig({ keptConfig: "a.kept_config" })}
  from asked a, threadloom.threads before
  where t.thread_id = a.thread_id and before.thread_id = a.thread_id
  returning t.thread_id, t.metadata, t.config, before.metadata as before, before.config as config_before,
    exists (select from threadloom.runs x where x.thread_id = t.thread_id
      and (x.status = 'running' or (x.status = 'pending' and x.available_at <= now()))) as behind)
${INSERT}`;

const valuesOf = (
  runs: readonly NewRun[],
  { cipher }: Queryable,
  encryptedMetadata: typeof ENCRYPTED.metadata,
): unknown[] =>
  ASKED.map(([, column, valueOf, encryptedOf]) => {
    if (cipher === undefined || encryptedOf === undefined) return runs.map(valueOf);
    const encrypt = column === "metadata" ? encryptedMetadata : encryptedOf;
    return runs.map((run) => encrypt({ run }, cipher));
  });

/**
 * `ttl` applies to threads that outlive their run. Leaves out runs of a missing or hidden assistant, and
 * returns the others.
 */
export const createThreadless = async (
  transaction: Queryable,
  { assistants }: CreationRights,
  runs: readonly NewRun[],
  ttl: ThreadTtl | undefined,
): Promise<RunSelector[]> => {
  if (runs.length === 0) return [];
  const values = [
    ...valuesOf(runs, transaction, ENCRYPTED.threadMetadata),
    ttl?.strategy ?? null,
    ttl?.minutes ?? null,
  ];
  const text = createThreadlessOf(assistants.condition("a.metadata", values));
  return await transaction.query<RunSelector>(text, values);
};

/** The caller has locked the threads and checked their visibility. */
export const createOnThreads = async (
  transaction: Queryable,
  { assistants }: CreationRights,
  runs: readonly NewRun[],
): Promise<RunSelector[]> => {
  if (runs.length === 0) return [];
  const values = valuesOf(runs, transaction, ENCRYPTED.metadata);
  const text = createOnThreadsOf(assistants.condition("a.metadata", values));
  return await transaction.query<RunSelector>(text, values);
};
