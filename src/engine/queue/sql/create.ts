import type { Visibility } from "../../../access/visibility.ts";
import { MERGED_BYTES_AT_MOST, mergedJson } from "../../../platform/database/merging.ts";
import {
  arraysOf,
  encryptedParameter,
  statement,
  type ComputedParameter,
  type Statement,
} from "../../../platform/database/statement.ts";
import type { MultitaskStrategy } from "../../../platform/database/tables.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { EXECUTED_COLUMNS, RUN_COLUMNS } from "../columns.ts";

/* The common part of the statements that create runs: `assistant`, `thread` and the insert. */

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

interface Rights {
  rights: CreationRights;
}
interface OfRun {
  run: NewRun;
}
export interface Creation extends Rights, OfRun {
  /** Undefined: no slot, so the run has to wait. */
  claim: ImmediateClaim | undefined;
  /** False: the run is stored only if it starts at once. Default: true. */
  mayWait?: boolean;
}

export interface Creations<Source> extends Rights {
  creations: readonly Source[];
}

const ids = ({ run: { runId, threadId, assistantId } }: OfRun) => ({
  run_id: runId,
  thread_id: threadId,
  assistant_id: assistantId,
});

export const RUN_PARAMETERS = {
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
} as const;

/** For the metadata of the run and of its new thread. */
export const METADATA_WITH_THREAD = encryptedParameter(
  "threads",
  "metadata",
  ({ run }: OfRun) => run.metadata,
  ids,
);

export const CLAIM_PARAMETERS = {
  workerId: ["uuid", ({ claim }: Creation) => claim?.workerId ?? null],
  leaseSeconds: ["float8", ({ claim }: Creation) => claim?.leaseSeconds ?? null],
  mayWait: ["boolean", ({ mayWait = true }: Creation) => mayWait],
  graphIds: ["text[]", ({ claim }: Creation) => claim?.graphIds ?? []],
} as const;

const NO_CLAIM = {
  workerId: "null::uuid",
  leaseSeconds: "null::float8",
  graphIds: "'{}'::text[]",
  mayWait: "true",
};

export const ASSISTANT_VISIBLE = {
  assistantVisible: ["fragment", ({ rights }: Rights) => rights.assistants.on("a.metadata")],
} as const;
export const THREAD_VISIBLE = {
  threadVisible: ["fragment", ({ rights }: Rights) => rights.threads.on("t.metadata")],
} as const;

/** The SQL of each value: a parameter, or a column of `asked`. */
type Sql = Readonly<
  Record<keyof typeof RUN_PARAMETERS | keyof typeof CLAIM_PARAMETERS | keyof typeof ASSISTANT_VISIBLE, string>
>;

export const GRAPH = "jsonb_build_object('graph_id', a.graph_id, 'assistant_id', a.assistant_id)";
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
export const takeThread = (
  sql: Sql & Readonly<Record<keyof typeof THREAD_VISIBLE, string>>,
  given: Readonly<Record<"unfinishedRuns" | "condition" | "stateUnchanged" | "behind" | "turn", string>>,
): string => `update threadloom.threads t set unfinished_runs = ${given.unfinishedRuns}, turns = t.turns + 1, status = 'busy',
    updated_at = now(), version = t.version + 1, metadata = ${WITH_GRAPH}, config = ${keptConfig(sql)}
  from assistant a, threadloom.threads before
  where t.thread_id = ${sql.threadId} and before.thread_id = ${sql.threadId} and ${sql.threadVisible} and ${given.condition}
  returning t.thread_id, t.metadata, t.config, before.metadata as metadata_before, before.config as config_before,
    ${given.stateUnchanged} as state_unchanged, ${given.behind} as behind, ${given.turn} as turn`;

/**
 * `thread`: SQL that takes or creates the threads. `state_unchanged`: the thread's state is surely that of the
 * snapshot in which this statement looks for checkpoints. `behind`, `turn`: engine/queue/README.md. Indexes:
 * assistants_pkey, checkpoints_pkey.
 */
const createRuns = (sql: Sql, thread: string, returned: string, arrays?: string): string => {
  const starts = `${sql.workerId} is not null and a.graph_id = any(${sql.graphIds})`;
  const isOne = arrays === undefined;
  return `with ${isOne ? "" : `asked as (select * from ${arrays}),\n`}assistant as (
  select a.assistant_id, a.graph_id, a.config, a.context, a.metadata, ${starts} as starts${isOne ? "" : ", asked.*"}
  from ${isOne ? "" : "asked, "}threadloom.assistants a
  where a.assistant_id = ${sql.assistantId} and ${sql.assistantVisible} and (${sql.mayWait} or ${starts})),
thread as (
  ${thread})
insert into threadloom.runs as r (run_id, thread_id, assistant_id, graph_id, status, metadata, config, context,
    kwargs, multitask_strategy, resumable, delete_thread, reader_id, webhook, attempt, worker_id,
    started_at, lease_until, available_at, behind, turn, replaced_metadata, replaced_config, auth_user, caller)
  select ${sql.runId}, ${sql.threadId}, a.assistant_id, a.graph_id,
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
  from thread t, assistant a${isOne ? "" : ` where t.thread_id = ${sql.threadId} order by place`}
  returning ${returned}`;
};

export const CLAIMED_COLUMNS = `${EXECUTED_COLUMNS}, r.status = 'running'
    and (select t.state_unchanged from thread t where t.thread_id = r.thread_id)
    and not exists (select from threadloom.checkpoints c where c.thread_id = r.thread_id) as starts_empty`;

export const createOne = (sql: Sql, thread: string): string => createRuns(sql, thread, CLAIMED_COLUMNS);

/**
 * In the given order, each run on another thread; → pending. With one statement per run, 100 runs took 2 s beside
 * running graphs.
 */
export const createMany = <Source, Named extends object, Conditional extends object>(
  parameters: Named & Readonly<Record<string, ComputedParameter<Source>>>,
  conditions: Conditional & Readonly<Record<string, ComputedParameter<Creations<NoInfer<Source>>>>>,
  threadOf: (sql: Sql & Readonly<Record<keyof Named | keyof Conditional, string>>) => string,
): Statement<Creations<Source>> => {
  const names = Object.keys(parameters);
  const columns = Object.fromEntries(names.map((name) => [name, `asked_${name}`]));
  const named: Readonly<Record<string, ComputedParameter<Creations<Source>>>> = {
    ...arraysOf<string, Source, Creations<Source>>(parameters, ({ creations }) => creations),
    ...conditions,
  };
  return statement(named, (parameters) => {
    const sql = { ...NO_CLAIM, ...parameters, ...columns } as Sql &
      Readonly<Record<keyof Named | keyof Conditional, string>>;
    const given = names.map((name) => parameters[name]).join(", ");
    const asked = `unnest(${given}) with ordinality as n(${Object.values(columns).join(", ")}, place)`;
    return createRuns(sql, threadOf(sql), RUN_COLUMNS, asked);
  });
};
