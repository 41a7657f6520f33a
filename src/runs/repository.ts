import type { Database, Queryable } from "../database/database.ts";
import { hasRoomFor } from "../database/merging.ts";
import type {
  CancelAction,
  ClaimedRunRow,
  EndedRun,
  MultitaskStrategy,
  RunRow,
  RunStatus,
} from "../database/tables.ts";
import type { JsonObject } from "../lib/json.ts";
import type { ThreadTtl } from "../project/thread-expiry.ts";

/** A run as it is asked for; ids are made by the caller. */
export interface NewRun {
  runId: string;
  threadId: string;
  assistantId: string;
  multitaskStrategy: MultitaskStrategy;
  metadata: JsonObject;
  /** Request's own; the assistant's and the thread's are merged under it. */
  config: JsonObject;
  context: JsonObject;
  /** `{configurable?, context?}` of the request that the thread keeps for later runs and for reads; if there is any. */
  keptConfig: JsonObject | undefined;
  /** The rest of the request, as JSON text. */
  kwargs: string;
  resumable: boolean;
  /** The thread exists for this run only and goes with it. */
  deleteThread: boolean;
  afterSeconds: number;
  /** The process that streams the run to its creator, if one does. */
  readerId: string | null;
}

/** A worker that has a free slot and will execute the run at once if it may start, and is of a graph that it hosts. */
export interface ImmediateClaim {
  workerId: string;
  leaseSeconds: number;
  graphIds: readonly string[];
}

export type UnfinishedRunRow = EndedRun & { status: "pending" | "running" };

/** What those who wait for the end of a run look at, each of them every second: not its input, which may be large. */
export type AwaitedRunRow = Pick<RunRow, "status" | "error" | "worker_id" | "reader_id" | "delete_thread">;

export type LockedRunRow = EndedRun & Pick<RunRow, "status" | "delete_thread">;

/** A run's place: what `thread_id` and `run_id` of a path name. */
export interface RunSelector {
  threadId: string;
  runId: string;
}

export const RUN_COLUMNS = `run_id, thread_id, assistant_id, graph_id, status, metadata, config, context, kwargs,
  multitask_strategy, resumable, delete_thread, error, cancel_action, attempt, lost_attempts, worker_id, reader_id,
  lease_until, available_at, started_at, created_at, updated_at`;

/** Of an `EndedRun`. */
export const TOLD_COLUMNS = "run_id, thread_id, graph_id, assistant_id, attempt, available_at, started_at";

/** `starts`: there is a slot for the run, $12, at a process that hosts its graph, $16. */
const ASSISTANT = `assistant as (
  select assistant_id, graph_id, config, context, metadata,
    $12::uuid is not null and graph_id = any($16::text[]) as starts
  from threadloom.assistants where assistant_id = $2)`;

const GRAPH = "jsonb_build_object('graph_id', a.graph_id, 'assistant_id', a.assistant_id)";
// Not `||` alone: large metadata are compressed in their row, so that PostgreSQL would take the same ones made anew for
// others and write the index over them again.
const WITH_GRAPH = `case when t.metadata @> ${GRAPH} then t.metadata else t.metadata || ${GRAPH} end`;

/** A key of the thread's config with what the request gives of it, $15. */
const withGiven = (key: "configurable" | "context"): string => `case when $15::jsonb ? '${key}'
    then jsonb_build_object('${key}', coalesce(t.config -> '${key}', '{}') || ($15::jsonb -> '${key}')) else '{}' end`;
const KEPT = `t.config || ${withGiven("configurable")} || ${withGiven("context")}`;
/**
 * The value as it is where nothing changes: a long one, which lies elsewhere, is not stored again with each run. Where
 * there is no room for all of it, what this request gives is kept and what others gave is not.
 */
const KEPT_CONFIG = `case when $15::jsonb is null or t.config = (${KEPT}) then t.config
    when ${hasRoomFor(KEPT)} then ${KEPT} else t.config - array['configurable', 'context'] || $15::jsonb end`;

/**
 * `thread` = the thread's metadata and config, as they are and as they were before, locked; $1 thread, $3 … $16
 * the run, see `runParameters`. `settled`: nothing was written to its state since this statement's snapshot, in which
 * the checkpoints are looked for; what waited for the thread's row may be newer. `behind`: see queue/claims.ts.
 */
const INSERT_RUN = `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, metadata, config, context,
    kwargs, multitask_strategy, resumable, delete_thread, reader_id, attempt, worker_id,
    started_at, lease_until, available_at, behind, replaced_metadata, replaced_config)
  select $3, $1, a.assistant_id, a.graph_id,
    case when a.starts then 'running' else 'pending' end,
    a.metadata || t.metadata || $4::jsonb,
    a.config || (t.config - 'context') || $5::jsonb || jsonb_build_object('configurable',
      coalesce(a.config -> 'configurable', '{}') || coalesce(t.config -> 'configurable', '{}')
        || coalesce($5::jsonb -> 'configurable', '{}')),
    a.context || coalesce(t.config -> 'context', '{}') || $6::jsonb,
    $7::json, $8, $9, $10, $14::uuid,
    case when a.starts then 1 else 0 end, case when a.starts then $12::uuid end,
    case when a.starts then now() end, case when a.starts then now() + make_interval(secs => $13::float8) end,
    now() + make_interval(secs => $11::float8), t.behind,
    case when not t.before @> ${GRAPH} then jsonb_strip_nulls(
      jsonb_build_object('graph_id', t.before -> 'graph_id', 'assistant_id', t.before -> 'assistant_id')) end,
    case when $15::jsonb is not null and t.config <> t.config_before then t.config_before end
  from thread t, assistant a
  returning ${RUN_COLUMNS}, (select starts from assistant) and (select settled from thread)
    and not exists (select from threadloom.checkpoints where thread_id = $1) as starts_empty`;

/**
 * The whole of creating a run on an idle thread in one statement (4,575/s against 1,848/s for five statements;
 * 385 against 85 at a round trip of 2.5 ms). The thread's row decides: whoever updates it first has the thread,
 * and a second one sees `unfinished_runs = 1` after its wait, because a locked row is read afresh. `before` is not: the
 * metadata that a rollback would put back may miss a change that was made at this very moment.
 * Indexes: threads_pkey, assistants_pkey, checkpoints_pkey.
 */
const CREATE_ON_IDLE_THREAD = `with ${ASSISTANT},
thread as (
  update threadloom.threads t set unfinished_runs = 1, status = 'busy', updated_at = now(),
    metadata = ${WITH_GRAPH}, config = ${KEPT_CONFIG}
  from assistant a, threadloom.threads before
  where t.thread_id = $1 and t.unfinished_runs = 0 and before.thread_id = $1
  returning t.metadata, t.config, before.metadata as before, before.config as config_before,
    t.state_updated_at = before.state_updated_at as settled, false as behind)
${INSERT_RUN}`;

/** The same with a thread of its own, for threadless runs and `if_not_exists: create`. */
const CREATE_WITH_THREAD = `with ${ASSISTANT},
thread as (
  insert into threadloom.threads (thread_id, unfinished_runs, status, metadata, config, ttl_strategy, ttl_minutes, expires_at)
  select $1, 1, 'busy', $17::jsonb || ${GRAPH}, coalesce($15::jsonb, '{}'), $18, $19::float8,
    now() + $19::float8 * interval '1 minute'
  from assistant a
  on conflict (thread_id) do nothing
  returning metadata, config, $17::jsonb as before, '{}'::jsonb as config_before, true as settled, false as behind)
${INSERT_RUN}`;

/**
 * Behind others; the caller holds the thread's lock. $17: how many pending runs this one replaces.
 * Indexes: threads_pkey, runs_one_running_per_thread, runs_pending_of_thread.
 */
const CREATE_BEHIND_OTHERS = `with ${ASSISTANT},
thread as (
  update threadloom.threads t set unfinished_runs = t.unfinished_runs + 1 - $17::int, status = 'busy', updated_at = now(),
    metadata = ${WITH_GRAPH}, config = ${KEPT_CONFIG}
  from assistant a, threadloom.threads before where t.thread_id = $1 and before.thread_id = $1
  returning t.metadata, t.config, before.metadata as before, before.config as config_before, false as settled,
    $11::float8 <= 0 and exists (
      select from threadloom.runs x where x.thread_id = $1
        and (x.status = 'running' or (x.status = 'pending' and x.available_at <= now()))) as behind)
${INSERT_RUN}`;

const runParameters = (run: NewRun, claim: ImmediateClaim | undefined): unknown[] => [
  run.threadId,
  run.assistantId,
  run.runId,
  JSON.stringify(run.metadata),
  JSON.stringify(run.config),
  JSON.stringify(run.context),
  run.kwargs,
  run.multitaskStrategy,
  run.resumable,
  run.deleteThread,
  run.afterSeconds,
  claim?.workerId ?? null,
  claim?.leaseSeconds ?? null,
  run.readerId,
  run.keptConfig === undefined ? null : JSON.stringify(run.keptConfig),
  claim?.graphIds ?? [],
];

/**
 * The SQL of runs as callers of the API see them; what a worker does with the queue is queue/queue.ts. `threadTtl`:
 * for threads that a run creates and that stay after it.
 */
export const createRunRepository = (database: Database, threadTtl?: ThreadTtl) => ({
  /** Undefined if the thread is missing or not idle, or the assistant is missing. */
  async createOnIdleThread(
    run: NewRun,
    claim: ImmediateClaim | undefined,
  ): Promise<ClaimedRunRow | undefined> {
    const rows = await database.query<ClaimedRunRow>(CREATE_ON_IDLE_THREAD, runParameters(run, claim));
    return rows[0];
  },

  /** Undefined if the thread exists already, or the assistant is missing. */
  async createWithThread(
    run: NewRun,
    threadMetadata: JsonObject,
    claim: ImmediateClaim | undefined,
    queryable: Queryable = database,
  ): Promise<ClaimedRunRow | undefined> {
    const ttl = run.deleteThread ? undefined : threadTtl;
    const parameters = [
      ...runParameters(run, claim),
      JSON.stringify(threadMetadata),
      ttl?.strategy,
      ttl?.minutes,
    ];
    const rows = await queryable.query<ClaimedRunRow>(CREATE_WITH_THREAD, parameters);
    return rows[0];
  },

  /** Undefined if the assistant is missing. */
  async createBehindOthers(
    transaction: Queryable,
    run: NewRun,
    replacedPending: number,
  ): Promise<RunRow | undefined> {
    const parameters = [...runParameters(run, undefined), replacedPending];
    const rows = await transaction.query<RunRow>(CREATE_BEHIND_OTHERS, parameters);
    return rows[0];
  },

  async assistantExists(assistantId: string): Promise<boolean> {
    const rows = await database.query("select 1 from threadloom.assistants where assistant_id = $1", [
      assistantId,
    ]);
    return rows.length > 0;
  },

  async threadExists(threadId: string, queryable: Queryable = database): Promise<boolean> {
    const rows = await queryable.query("select 1 from threadloom.threads where thread_id = $1", [threadId]);
    return rows.length > 0;
  },

  /** Locks the thread against every other change of its runs; false if there is none. */
  async lockThread(transaction: Queryable, threadId: string): Promise<boolean> {
    const rows = await transaction.query(
      "select 1 from threadloom.threads where thread_id = $1 for no key update",
      [threadId],
    );
    return rows.length > 0;
  },

  /** Locks those of these threads that are there, in the order of their ids: two callers can't wait for each other. */
  async lockThreads(transaction: Queryable, threadIds: readonly string[]): Promise<Set<string>> {
    if (threadIds.length === 0) return new Set();
    const rows = await transaction.query<{ thread_id: string }>(
      "select thread_id from threadloom.threads where thread_id = any($1::uuid[]) order by thread_id for no key update",
      [threadIds],
    );
    return new Set(rows.map((row) => row.thread_id));
  },

  /** The same for the unfinished runs of several threads; the renewal of leases takes runs in this order, too. */
  async lockAllUnfinished(transaction: Queryable, threadIds: readonly string[]): Promise<void> {
    if (threadIds.length === 0) return;
    await transaction.query(
      `select 1 from threadloom.runs where thread_id = any($1::uuid[]) and status in ('pending', 'running')
       order by run_id for update`,
      [threadIds],
    );
  },

  /** In order of creation. Locks them: a worker that claims one of them now waits or has already done so. */
  async lockUnfinished(transaction: Queryable, threadId: string): Promise<UnfinishedRunRow[]> {
    return await transaction.query<UnfinishedRunRow>(
      `select ${TOLD_COLUMNS}, status from threadloom.runs
       where thread_id = $1 and status in ('pending', 'running') order by created_at, run_id for update`,
      [threadId],
    );
  },

  async endPending(transaction: Queryable, runIds: string[]): Promise<void> {
    await transaction.query(
      "update threadloom.runs set status = 'interrupted', updated_at = now() where run_id = any($1::uuid[])",
      [runIds],
    );
  },

  async remove(transaction: Queryable, runIds: string[]): Promise<void> {
    await transaction.query("delete from threadloom.runs where run_id = any($1::uuid[])", [runIds]);
  },

  async askToCancel(transaction: Queryable, runIds: string[], action: CancelAction): Promise<void> {
    await transaction.query(
      `update threadloom.runs set updated_at = now(),
         cancel_action = case when cancel_action = 'rollback' then cancel_action else $2 end
       where run_id = any($1::uuid[]) and status = 'running'`,
      [runIds, action],
    );
  },

  async find({ threadId, runId }: RunSelector, queryable: Queryable = database): Promise<RunRow | undefined> {
    const rows = await queryable.query<RunRow>(
      `select ${RUN_COLUMNS} from threadloom.runs where run_id = $1 and thread_id = $2`,
      [runId, threadId],
    );
    return rows[0];
  },

  async findAwaited({ threadId, runId }: RunSelector): Promise<AwaitedRunRow | undefined> {
    const rows = await database.query<AwaitedRunRow>(
      `select status, error, worker_id, reader_id, delete_thread from threadloom.runs
       where run_id = $1 and thread_id = $2`,
      [runId, threadId],
    );
    return rows[0];
  },

  /** In the order of the ids; those that are gone are missing. */
  async findAll(runIds: readonly string[]): Promise<RunRow[]> {
    return await database.query<RunRow>(
      `select ${RUN_COLUMNS} from threadloom.runs where run_id = any($1::uuid[]) order by array_position($1::uuid[], run_id)`,
      [runIds],
    );
  },

  /**
   * Notes that a process reads a run that another one executes or may come to execute, so that its events go to
   * the event log, and a threadless run stays until they are read. Of two processes that read a pending run either
   * may come to execute it, so then no process stands there that could take itself for the only reader.
   */
  async announceReader(runId: string, processId: string): Promise<void> {
    await database.query(
      `update threadloom.runs set reader_id = case when reader_id is null or reader_id = $2 then $2
         else '00000000-0000-0000-0000-000000000000' end
       where run_id = $1 and status in ('pending', 'running') and worker_id is distinct from $2`,
      [runId, processId],
    );
  },

  /** `ended` also for a run that is gone; `pending` also for one that this process has claimed and is about to begin. */
  async phaseOf(runId: string, processId: string): Promise<"pending" | "running" | "ended"> {
    const [row] = await database.query<{ status: RunStatus; here: boolean }>(
      "select status, worker_id is not distinct from $2::uuid as here from threadloom.runs where run_id = $1",
      [runId, processId],
    );
    if (row?.status === "running") return row.here ? "pending" : "running";
    return row?.status === "pending" ? "pending" : "ended";
  },

  /** What waits for an answer on a thread: `{task_id: [{id, value}]}`. */
  async interrupts(threadId: string): Promise<JsonObject> {
    const rows = await database.query<{ interrupts: JsonObject }>(
      "select interrupts from threadloom.threads where thread_id = $1",
      [threadId],
    );
    return rows[0]?.interrupts ?? {};
  },

  async threadOf(runId: string): Promise<string | undefined> {
    const rows = await database.query<{ thread_id: string }>(
      "select thread_id from threadloom.runs where run_id = $1",
      [runId],
    );
    return rows[0]?.thread_id;
  },
});

export type RunRepository = ReturnType<typeof createRunRepository>;
