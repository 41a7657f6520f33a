import type { Visibility } from "../../../access/visibility.ts";
import { hasRoomFor } from "../../../platform/database/merging.ts";
import type { MultitaskStrategy } from "../../../platform/database/tables.ts";
import type { Cipher } from "../../../platform/encryption/cipher.ts";
import { RUN_JSON, THREAD_JSON, type RunKey } from "../../../platform/encryption/columns.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { EXECUTED_COLUMNS } from "../columns.ts";
import { storedWebhook } from "../webhook-address.ts";

/*
 * What the three statements that create a run have in common: create-on-idle-thread.ts, create-with-thread.ts and
 * create-behind-others.ts. Each is a chain of three parts: `assistant`, `thread`, and the insert.
 */

/** A run as it is asked for; ids are made by the caller. */
export interface NewRun {
  runId: string;
  threadId: string;
  assistantId: string;
  multitaskStrategy: MultitaskStrategy;
  /** Also of a thread that is created for the run: by them its owner, or a `cron_id`, finds it. */
  metadata: JsonObject;
  /** The user whose run it is, as its graph is told; null if no user created it. */
  authUser: JsonObject | null;
  /** By whom it is counted while it waits, see counted-as.ts; null: by nobody. */
  caller: string | null;
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
  /** Whom its end is told: an address in its usual spelling, or a path of this server. */
  webhook: string | null;
  /** The process that streams the run to its creator, if one does. */
  readerId: string | null;
  /** `threads.turns` as its creator saw it: if another run was created since, this one is not. Undefined: it does not matter. */
  turnsSeen?: number | undefined;
}

/** A worker that has a free slot and will execute the run at once if it may start, and is of a graph that it hosts. */
export interface ImmediateClaim {
  workerId: string;
  leaseSeconds: number;
  graphIds: readonly string[];
}

/** What its caller may do: create runs on these threads, and read these assistants. */
export interface CreationRights {
  threads: Visibility<"threads">;
  assistants: Visibility<"assistants">;
}

/** What is stored. `claim`: undefined if there is no slot for the run, so that it has to wait. */
export interface Creation {
  rights: CreationRights;
  run: NewRun;
  claim: ImmediateClaim | undefined;
  /** False: it is stored only if it starts at once. True if left out. */
  mayWait?: boolean;
}

const keyOf = ({ runId, threadId, assistantId }: NewRun): RunKey => ({
  run_id: runId,
  thread_id: threadId,
  assistant_id: assistantId,
});
const encrypted =
  (encrypt: (run: NewRun, cipher: Cipher) => string | null) =>
  ({ run }: Pick<Creation, "run">, cipher: Cipher): string | null =>
    encrypt(run, cipher);

/** What a run is given, sealed. */
export const ENCRYPTED = {
  /** Where a thread is made for the run, which has the same. */
  threadMetadata: encrypted(({ metadata, threadId }, cipher) =>
    THREAD_JSON.metadata.encrypted(cipher, metadata, { thread_id: threadId }),
  ),
  metadata: encrypted((run, cipher) => RUN_JSON.metadata.encrypted(cipher, run.metadata, keyOf(run))),
  config: encrypted((run, cipher) => RUN_JSON.config.encrypted(cipher, run.config, keyOf(run))),
  context: encrypted((run, cipher) => RUN_JSON.context.encrypted(cipher, run.context, keyOf(run))),
  kwargs: encrypted((run, cipher) => RUN_JSON.kwargs.encrypted(cipher, run.kwargs, keyOf(run))),
  authUser: encrypted(({ authUser, runId }, cipher) =>
    authUser === null
      ? null
      : RUN_JSON.auth_user.encrypted(cipher, JSON.stringify(authUser), { run_id: runId }),
  ),
  webhook: encrypted(({ webhook, runId }, cipher) =>
    webhook === null ? null : storedWebhook(cipher, webhook, runId),
  ),
  keptConfig: encrypted(({ keptConfig, threadId }, cipher) =>
    keptConfig === undefined
      ? null
      : THREAD_JSON.config.encrypted(cipher, keptConfig, { thread_id: threadId }),
  ),
} as const;

export const CREATE_PARAMETERS = {
  threadId: ["uuid", ({ run }: Creation) => run.threadId],
  assistantId: ["uuid", ({ run }: Creation) => run.assistantId],
  runId: ["uuid", ({ run }: Creation) => run.runId],
  metadata: ["jsonb", ({ run }: Creation) => JSON.stringify(run.metadata), ENCRYPTED.metadata],
  config: ["jsonb", ({ run }: Creation) => JSON.stringify(run.config), ENCRYPTED.config],
  context: ["jsonb", ({ run }: Creation) => JSON.stringify(run.context), ENCRYPTED.context],
  kwargs: ["json", ({ run }: Creation) => run.kwargs, ENCRYPTED.kwargs],
  multitaskStrategy: ["text", ({ run }: Creation) => run.multitaskStrategy],
  resumable: ["boolean", ({ run }: Creation) => run.resumable],
  deleteThread: ["boolean", ({ run }: Creation) => run.deleteThread],
  afterSeconds: ["float8", ({ run }: Creation) => run.afterSeconds],
  readerId: ["uuid", ({ run }: Creation) => run.readerId],
  webhook: ["text", ({ run }: Creation) => run.webhook, ENCRYPTED.webhook],
  keptConfig: [
    "jsonb",
    ({ run: { keptConfig } }: Creation) => (keptConfig === undefined ? null : JSON.stringify(keptConfig)),
    ENCRYPTED.keptConfig,
  ],
  workerId: ["uuid", ({ claim }: Creation) => claim?.workerId ?? null],
  leaseSeconds: ["float8", ({ claim }: Creation) => claim?.leaseSeconds ?? null],
  authUser: [
    "jsonb",
    ({ run: { authUser } }: Creation) => (authUser === null ? null : JSON.stringify(authUser)),
    ENCRYPTED.authUser,
  ],
  caller: ["text", ({ run }: Creation) => run.caller],
  graphIds: ["text[]", ({ claim }: Creation) => claim?.graphIds ?? []],
  mayWait: ["boolean", ({ mayWait = true }: Creation) => mayWait],
} as const;

export const ASSISTANT_VISIBLE = {
  assistantVisible: ["metadata", ({ rights }: Creation) => rights.assistants],
} as const;
export const THREAD_VISIBLE = {
  threadVisible: ["t.metadata", ({ rights }: Creation) => rights.threads],
} as const;

type Sql = Readonly<Record<keyof typeof CREATE_PARAMETERS | keyof typeof ASSISTANT_VISIBLE, string>>;

/** There is a slot for the run, at a process that hosts its graph. */
const starts = (sql: Sql): string => `${sql.workerId} is not null and graph_id = any(${sql.graphIds})`;

/** Index: assistants_pkey. */
export const assistant = (sql: Sql): string => `assistant as (
  select assistant_id, graph_id, config, context, metadata, ${starts(sql)} as starts
  from threadloom.assistants 
  where assistant_id = ${sql.assistantId} and ${sql.assistantVisible} and (${sql.mayWait} or ${starts(sql)}))`;

/** Which graph and which assistant a thread belongs to, in its metadata. */
export const GRAPH = "jsonb_build_object('graph_id', a.graph_id, 'assistant_id', a.assistant_id)";
// Not `||` alone: large metadata are compressed in their row, so that PostgreSQL would take the same ones made anew for
// others and write the index over them again.
export const WITH_GRAPH = `case when t.metadata @> ${GRAPH} then t.metadata else t.metadata || ${GRAPH} end`;

/** A key of the thread's config with what the request gives of it. */
const withGiven = (
  sql: Pick<Sql, "keptConfig">,
  key: "configurable" | "context",
): string => `case when ${sql.keptConfig} ? '${key}'
    then jsonb_build_object('${key}', coalesce(t.config -> '${key}', '{}') || (${sql.keptConfig} -> '${key}'))
    else '{}' end`;

/**
 * The thread's config with what the request gives. The value as it is where nothing changes: a long one, which lies
 * elsewhere, is not stored again with each run. Where there is no room for all of it, what this request gives is kept and
 * what others gave is not.
 */
export const keptConfig = (sql: Pick<Sql, "keptConfig">): string => {
  const kept = `t.config || ${withGiven(sql, "configurable")} || ${withGiven(sql, "context")}`;
  return `case when ${sql.keptConfig} is null or t.config = (${kept}) then t.config
    when ${hasRoomFor(kept)} then ${kept} else t.config - array['configurable', 'context'] || ${sql.keptConfig} end`;
};

/** `metadata`, `config` and `context` of a run: the assistant's, over them the thread's, over them what was asked for. */
export const mergedColumns = (
  asked: Readonly<Record<"metadata" | "config" | "context", string>>,
): string => `a.metadata || t.metadata || ${asked.metadata},
    a.config || (t.config - 'context') || ${asked.config} || jsonb_build_object('configurable',
      coalesce(a.config -> 'configurable', '{}') || coalesce(t.config -> 'configurable', '{}')
        || coalesce(${asked.config} -> 'configurable', '{}')),
    a.context || coalesce(t.config -> 'context', '{}') || ${asked.context}`;

/**
 * `thread` = the thread's metadata and config, as they are and as they were before, locked. `settled`: nothing was
 * written to its state since this statement's snapshot, in which the checkpoints are looked for; what waited for the
 * thread's row may be newer. `behind` and `turn`: see engine/queue/README.md. Index: checkpoints_pkey.
 */
export const insertRun = (
  sql: Sql,
): string => `insert into threadloom.runs as r (run_id, thread_id, assistant_id, graph_id, status, metadata, config, context,
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
    case when not t.before @> ${GRAPH} then jsonb_strip_nulls(
      jsonb_build_object('graph_id', t.before -> 'graph_id', 'assistant_id', t.before -> 'assistant_id')) end,
    case when ${sql.keptConfig} is not null and t.config <> t.config_before then t.config_before end,
    ${sql.authUser}, ${sql.caller}
  from thread t, assistant a
  returning ${EXECUTED_COLUMNS}, (select starts from assistant) and (select settled from thread)
    and not exists (select from threadloom.checkpoints where thread_id = ${sql.threadId}) as starts_empty`;
