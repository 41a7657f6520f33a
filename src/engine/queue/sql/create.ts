import type { Visibility } from "../../../access/visibility.ts";
import type { ThreadTtl } from "../../../graphs/project/expiry.ts";
import type { Database, Queryable } from "../../../platform/database/database.ts";
import { LARGE_CHARACTERS, type GroupedStatement } from "../../../platform/database/grouping.ts";
import { MERGED_BYTES_AT_MOST, mergedJson } from "../../../platform/database/merging.ts";
import {
  encryptedParameter,
  fragment,
  listStatement,
  NO_CONDITION,
  type List,
  type ListStatement,
} from "../../../platform/database/statement.ts";
import type { ClaimedRunRow, MultitaskStrategy, RunRow } from "../../../platform/database/tables.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { EXECUTED_COLUMNS, openRuns } from "../columns.ts";

/* The statements that create runs. */

export interface NewRun {
  runId: string;
  threadId: string;
  assistantId: string;
  multitaskStrategy: MultitaskStrategy;
  /** Also stored on a thread created for the run, so that a search by owner or `cron_id` finds the thread. */
  metadata: JsonObject;
  /** Null if no user created the run. */
  authUser: JsonObject | null;
  /** The name for which the run counts (counted-as.ts); null: not counted. */
  caller: string | null;
  /** From the request only; the statement merges it over the configs of assistant and thread. */
  config: JsonObject;
  context: JsonObject;
  /** `{configurable?, context?}` that the thread keeps for later runs and reads. */
  keptConfig: JsonObject | undefined;
  /** The rest of the request, as JSON text. */
  kwargs: string;
  resumable: boolean;
  deleteThread: boolean;
  afterSeconds: number;
  /** A normalized address, or a path of this server. */
  webhook: string | null;
  /** The process that streams the run to its creator. */
  readerId: string | null;
  /** `threads.turns` as the creator read it: a later creation prevents this one. Undefined: no check. */
  turnsSeen?: number | undefined;
}

export interface ImmediateClaim {
  workerId: string;
  leaseSeconds: number;
  graphIds: readonly string[];
}

export interface CreationRights {
  threads: Visibility<"threads">;
  assistants: Visibility<"assistants">;
}

interface Creation {
  rights: CreationRights;
  run: NewRun;
  /** Undefined: no slot, so the run has to wait. */
  claim?: ImmediateClaim | undefined;
  /** False: the run is stored only if it starts at once. Default: true. */
  mayWait?: boolean;
}
type Creations = readonly Creation[];
type OfRun = Pick<Creation, "run">;

const ids = ({ run: { runId, threadId, assistantId } }: OfRun) => ({
  run_id: runId,
  thread_id: threadId,
  assistant_id: assistantId,
});

const RUN_PARAMETERS = {
  threadId: ["uuid", ({ run }: OfRun) => run.threadId],
  assistantId: ["uuid", ({ run }: OfRun) => run.assistantId],
  runId: ["uuid", ({ run }: OfRun) => run.runId],
  metadata: encryptedParameter("runs", "metadata", ({ run }: OfRun) => run.metadata, ids),
  config: encryptedParameter("runs", "config", ({ run }: OfRun) => run.config, ids),
  context: encryptedParameter("runs", "context", ({ run }: OfRun) => run.context, ids),
  kwargs: encryptedParameter("runs", "kwargs", ({ run }: OfRun) => run.kwargs, ids),
  multitaskStrategy: ["text", ({ run }: OfRun) => run.multitaskStrategy],
  resumable: ["boolean", ({ run }: OfRun) => run.resumable],
  deleteThread: ["boolean", ({ run }: OfRun) => run.deleteThread],
  afterSeconds: ["float8", ({ run }: OfRun) => run.afterSeconds],
  readerId: ["uuid", ({ run }: OfRun) => run.readerId],
  webhook: encryptedParameter("runs", "webhook", ({ run }: OfRun) => run.webhook, ids),
  keptConfig: encryptedParameter("threads", "config", ({ run }: OfRun) => run.keptConfig ?? null, ids),
  authUser: encryptedParameter(
    "runs",
    "auth_user",
    ({ run: { authUser } }: OfRun) => (authUser === null ? null : JSON.stringify(authUser)),
    ids,
  ),
  caller: ["text", ({ run }: OfRun) => run.caller],
  workerId: ["uuid", ({ claim }: Creation) => claim?.workerId ?? null],
  leaseSeconds: ["float8", ({ claim }: Creation) => claim?.leaseSeconds ?? null],
  mayWait: ["boolean", ({ mayWait = true }: Creation) => mayWait],
} as const;

/** A list has the rights of its first creation. A process claims only for itself. */
const SHARED = {
  graphIds: [
    "text[]",
    (all: Creations) => all.find(({ claim }) => claim !== undefined)?.claim?.graphIds ?? [],
  ],
  assistantVisible: ["fragment", (all: Creations) => all[0]!.rights.assistants.on("a.metadata")],
} as const;
const SHARED_ON_THREAD = {
  ...SHARED,
  threadVisible: ["fragment", (all: Creations) => all[0]!.rights.threads.on("t.metadata")],
} as const;

type Sql = Readonly<Record<keyof typeof RUN_PARAMETERS | keyof typeof SHARED, string>>;

const GRAPH = "jsonb_build_object('graph_id', a.graph_id, 'assistant_id', a.assistant_id)";
// Without `case`, PostgreSQL would store large metadata and update the index even without a change: it
// compares compressed values byte by byte.
const WITH_GRAPH = `case when t.metadata @> ${GRAPH} then t.metadata else t.metadata || ${GRAPH} end`;

/** Null if neither the thread nor the request has the member. */
const keptMember = (sql: Pick<Sql, "keptConfig">, key: "configurable" | "context"): string =>
  `'"${key}":' || ${mergedJson(`t.config -> '${key}'`, `${sql.keptConfig} -> '${key}'`)}`;

/**
 * If nothing changes, the expression is the plain column, so PostgreSQL does not store a long value again. If
 * the merged value is too large, only the request's own values are kept. `offset 0` merges once.
 */
const keptConfig = (
  sql: Pick<Sql, "keptConfig">,
): string => `case when ${sql.keptConfig} is null then t.config else (
    select case when kept.config = t.config::text then t.config
      when octet_length(kept.config) <= ${MERGED_BYTES_AT_MOST} then kept.config::json else ${sql.keptConfig} end
    from (select '{' || concat_ws(',', ${keptMember(sql, "configurable")}, ${keptMember(sql, "context")}) || '}' as config
      offset 0) as kept) end`;

/**
 * The request's values override the thread's, which override the assistant's. A thread's config has only the members of
 * `keptConfig`.
 */
const mergedColumns = (sql: Pick<Sql, "metadata" | "config" | "context">): string => {
  const member = (config: string): string => `${config} -> 'configurable'`;
  const configurable = mergedJson(member("a.config"), member("t.config"), member(sql.config));
  return `a.metadata || t.metadata || ${sql.metadata},
    ${mergedJson("a.config", sql.config, `('{"configurable":' || coalesce(${configurable}, '{}') || '}')::json`)},
    ${mergedJson("a.context", "t.config -> 'context'", sql.context)}`;
};

/**
 * Updates an existing thread. If the update waits for the thread's row, `before` is not read again, so a
 * rollback may lose a concurrent change of metadata.
 */
const takeThread = (
  sql: Sql & Readonly<Record<"threadVisible", string>>,
  given: Readonly<Record<"unfinishedRuns" | "condition" | "stateUnchanged" | "behind" | "turn", string>>,
): string => `update threadloom.threads t set unfinished_runs = ${given.unfinishedRuns}, turns = t.turns + 1, status = 'busy',
    updated_at = now(), version = t.version + 1, metadata = ${WITH_GRAPH}, config = ${keptConfig(sql)}
  from assistant a, threadloom.threads before
  where t.thread_id = ${sql.threadId} and before.thread_id = ${sql.threadId} and ${sql.threadVisible} and ${given.condition}
  returning t.thread_id, t.metadata, t.config, before.metadata as metadata_before, before.config as config_before,
    ${given.stateUnchanged} as state_unchanged, ${given.behind} as behind, ${given.turn} as turn`;

/**
 * Several runs are created in the given order, each on another thread. `thread`: SQL that takes or creates the threads.
 * `state_unchanged`: the thread's state is surely that of the snapshot in which this statement looks for checkpoints.
 * `behind`, `turn`: engine/queue/README.md. Indexes: assistants_pkey, checkpoints_pkey.
 */
const createText = (sql: Sql, { rows }: List, thread: string): string => {
  const starts = `${sql.workerId} is not null and a.graph_id = any(${sql.graphIds})`;
  return `with assistant as (
  select a.assistant_id, a.graph_id, a.config, a.context, a.metadata, ${starts} as starts, place
  from ${rows} join threadloom.assistants a
    on a.assistant_id = ${sql.assistantId} and ${sql.assistantVisible} and (${sql.mayWait} or ${starts})),
thread as (
  ${thread})
insert into threadloom.runs as r (run_id, thread_id, assistant_id, graph_id, status, metadata, config, context,
    kwargs, multitask_strategy, resumable, delete_thread, reader_id, webhook, attempt, worker_id,
    started_at, lease_until, available_at, behind, turn, replaced_metadata, replaced_config, auth_user, caller)
  select ${sql.runId}, t.thread_id, a.assistant_id, a.graph_id,
    case when a.starts then 'running' else 'pending' end,
    ${mergedColumns(sql)},
    ${sql.kwargs}, ${sql.multitaskStrategy}, ${sql.resumable}, ${sql.deleteThread}, ${sql.readerId}, ${sql.webhook},
    case when a.starts then 1 else 0 end, case when a.starts then ${sql.workerId} end,
    case when a.starts then now() end,
    case when a.starts then now() + make_interval(secs => ${sql.leaseSeconds}) end,
    now() + make_interval(secs => ${sql.afterSeconds}), t.behind, case when a.starts then t.turn else 0 end,
    case when not t.metadata_before @> ${GRAPH} then jsonb_strip_nulls(
      jsonb_build_object('graph_id', t.metadata_before -> 'graph_id', 'assistant_id', t.metadata_before -> 'assistant_id')) end,
    case when ${sql.keptConfig} is not null and t.config::text <> t.config_before::text then t.config_before end,
    ${sql.authUser}, ${sql.caller}
  from thread t join assistant a on t.thread_id = ${sql.threadId}
  returning ${EXECUTED_COLUMNS}, r.status = 'running'
    and (select t.state_unchanged from thread t where t.thread_id = r.thread_id)
    and not exists (select from threadloom.checkpoints c where c.thread_id = r.thread_id) as starts_empty`;
};

const created = async <Source extends Creation>(
  queryable: Queryable,
  { query }: ListStatement<Source>,
  all: readonly Source[],
): Promise<ClaimedRunRow[]> => openRuns(queryable, await query<ClaimedRunRow>(queryable, all));

/** Callers with limited rights have conditions of their own, so they are alone. */
const grouped = <Source extends Creation & { isNamed?: boolean }>(
  creating: ListStatement<Source>,
): GroupedStatement<Source, ClaimedRunRow> => ({
  threadOf: ({ run }) => run.threadId,
  isSeparate: ({ rights, run, isNamed }) =>
    isNamed === true ||
    !rights.threads.hidesNothing ||
    !rights.assistants.hidesNothing ||
    run.kwargs.length > LARGE_CHARACTERS,
  query: (queryable, all) => created(queryable, creating, all),
});

/**
 * → running, or pending without a slot. One statement creates 4,575 runs/s, five create 1,848 (at a round
 * trip of 2.5 ms: 385 and 85). A concurrent creation waits for the thread's row and then sees
 * `unfinished_runs = 1`. Indexes: threads_pkey, assistants_pkey, checkpoints_pkey.
 */
const ON_IDLE_THREAD = grouped(
  listStatement(
    { ...RUN_PARAMETERS, turnsSeen: ["integer", ({ run }: Creation) => run.turnsSeen ?? null] },
    {
      ...SHARED_ON_THREAD,
      /** A statement that holds locks and waits for others can deadlock. */
      areFree: [
        "fragment",
        (all: Creations) =>
          all.length === 1
            ? NO_CONDITION
            : fragment(
                (parameter) => `t.thread_id in (
      select l.thread_id from threadloom.threads l where l.thread_id = any(${parameter(all.map(({ run }) => run.threadId))}::uuid[])
      for no key update skip locked)`,
              ),
      ],
    },
    (sql, list) =>
      createText(
        sql,
        list,
        takeThread(sql, {
          unfinishedRuns: "1",
          condition: `t.unfinished_runs = 0 and (${sql.turnsSeen} is null or t.turns = ${sql.turnsSeen})
    and ${sql.areFree}`,
          stateUnchanged: "t.state_updated_at = before.state_updated_at",
          behind: "false",
          turn: "t.turns",
        }),
      ),
  ),
);

/**
 * Undefined if the thread is missing, hidden, busy or past `turnsSeen`; if the assistant is missing or
 * hidden; or if the run would have to wait and `mayWait` is false.
 */
export const createOnIdleThread = (
  database: Pick<Database, "grouped">,
  rights: CreationRights,
  run: NewRun,
  claim: ImmediateClaim | undefined,
  mayWait = true,
): Promise<ClaimedRunRow | undefined> => database.grouped(ON_IDLE_THREAD, { rights, run, claim, mayWait });

interface OnNewThread extends Creation {
  /** Undefined: the thread never expires. */
  ttl: ThreadTtl | undefined;
  /** The client chose the thread's id. Sent alone, because `on conflict` waits for another creation of the thread. */
  isNamed?: boolean;
}

const NEW_THREAD_PARAMETERS = {
  ...RUN_PARAMETERS,
  // Of the run and of its new thread.
  metadata: encryptedParameter("threads", "metadata", ({ run }: OfRun) => run.metadata, ids),
  // A thread that is deleted with its run never expires.
  ttlStrategy: ["text", ({ run, ttl }: OnNewThread) => (run.deleteThread ? null : (ttl?.strategy ?? null))],
  ttlMinutes: ["float8", ({ run, ttl }: OnNewThread) => (run.deleteThread ? null : (ttl?.minutes ?? null))],
} as const;

/**
 * → running, or pending without a slot: like `createOnIdleThread`, on a new thread. Indexes: threads_pkey,
 * assistants_pkey, checkpoints_pkey.
 */
const WITH_THREAD = grouped(
  listStatement(NEW_THREAD_PARAMETERS, SHARED, (sql, list) =>
    createText(
      sql,
      list,
      `insert into threadloom.threads (thread_id, unfinished_runs, turns, status, metadata, config, ttl_strategy, ttl_minutes, expires_at)
  select ${sql.threadId}, 1, 1, 'busy', ${sql.metadata} || ${GRAPH}, coalesce(${sql.keptConfig}, '{}'), ${sql.ttlStrategy},
    ${sql.ttlMinutes}, now() + ${sql.ttlMinutes} * interval '1 minute'
  from assistant a
  on conflict (thread_id) do nothing
  returning thread_id, metadata, config, '{}'::jsonb as metadata_before, '{}'::json as config_before,
    true as state_unchanged, false as behind, turns as turn`,
    ),
  ),
);

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
  isNamed = false,
): Promise<ClaimedRunRow | undefined> =>
  database.grouped(WITH_THREAD, { rights, run, claim, mayWait, ttl, isNamed });

interface NewRuns {
  rights: CreationRights;
  runs: readonly NewRun[];
  ttl: ThreadTtl | undefined;
}

/** → pending. Leaves out runs whose thread exists, or whose assistant is missing or hidden. */
export const createWithThreads = async (
  transaction: Queryable,
  { rights, runs, ttl }: NewRuns,
): Promise<RunRow[]> =>
  runs.length === 0
    ? []
    : await WITH_THREAD.query(
        transaction,
        runs.map((run) => ({ rights, run, ttl })),
      );

interface BehindOthers extends OfRun {
  /** Pending runs that were ended in favour of this one. Default: 0. */
  replacedPending?: number;
  /** Includes this run; null: no limit. */
  pendingAtMost?: number | null;
}
type CreationBehindOthers = Creation & BehindOthers;

/**
 * → pending, on a thread that may be busy; the caller holds the thread's lock. Indexes: threads_pkey,
 * runs_one_begun_per_thread, runs_pending_of_thread.
 */
const BEHIND_OTHERS = listStatement(
  {
    ...RUN_PARAMETERS,
    replacedPending: ["integer", ({ replacedPending }: CreationBehindOthers) => replacedPending ?? 0],
    pendingAtMost: ["integer", ({ pendingAtMost }: CreationBehindOthers) => pendingAtMost ?? null],
  },
  SHARED_ON_THREAD,
  (sql, list) =>
    createText(
      sql,
      list,
      takeThread(sql, {
        unfinishedRuns: `t.unfinished_runs + 1 - ${sql.replacedPending}`,
        condition: `(${sql.pendingAtMost} is null or t.unfinished_runs - ${sql.replacedPending} < ${sql.pendingAtMost}
      + (select count(*) from threadloom.runs x where x.thread_id = t.thread_id and x.status = 'running'))`,
        stateUnchanged: "false",
        behind: `${sql.afterSeconds} <= 0 and exists (
      select from threadloom.runs x where x.thread_id = ${sql.threadId}
        and (x.status = 'running' or (x.status = 'pending' and x.available_at <= now())))`,
        turn: "0",
      }),
    ),
);

/**
 * The caller holds the threads' locks and names each thread once. Stores no run
 * whose assistant is missing or hidden, and none on a thread that has `pendingAtMost` pending runs.
 */
export const createBehindOthers = async (
  transaction: Queryable,
  rights: CreationRights,
  creations: readonly BehindOthers[],
): Promise<RunRow[]> =>
  creations.length === 0
    ? []
    : await created(
        transaction,
        BEHIND_OTHERS,
        creations.map((creation) => ({ rights, ...creation })),
      );
