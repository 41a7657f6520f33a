import type { Visibility } from "../../../access/visibility.ts";
import { hasRoomFor } from "../../../platform/database/merging.ts";
import type { MultitaskStrategy } from "../../../platform/database/tables.ts";
import type { Cipher } from "../../../platform/encryption/cipher.ts";
import { RUN_JSON, THREAD_JSON, type RunKey } from "../../../platform/encryption/columns.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { EXECUTED_COLUMNS } from "../columns.ts";
import { storedWebhook } from "../webhook-address.ts";

/* The common part of the statements that create one run: `assistant`, `thread` and the insert. */

export interface NewRun {
  runId: string;
  threadId: string;
  assistantId: string;
  multitaskStrategy: MultitaskStrategy;
  /**
   * Also stored on a thread that is created for the run, so that a search by owner or `cron_id` finds the
   * thread.
   */
  metadata: JsonObject;
  /** Null if no user created the run. */
  authUser: JsonObject | null;
  /** Counts the run while it is pending (counted-as.ts); null: not counted. */
  caller: string | null;
  /** The request's alone; the statement merges it over those of the assistant and the thread. */
  config: JsonObject;
  context: JsonObject;
  /** `{configurable?, context?}` that the thread keeps for later runs and reads. */
  keptConfig: JsonObject | undefined;
  /** The rest of the request, as JSON text. */
  kwargs: string;
  resumable: boolean;
  deleteThread: boolean;
  afterSeconds: number;
  /** Where the end is sent: a normalized address, or a path of this server. */
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

/** Undefined: no slot, so the run has to wait. */
export interface Creation {
  rights: CreationRights;
  run: NewRun;
  claim: ImmediateClaim | undefined;
  /** False: the run is stored only if it starts at once. Default: true. */
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

export const ENCRYPTED = {
  /** Bound to the id of the thread that is created with the run. */
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
  assistantVisible: ["fragment", ({ rights }: Creation) => rights.assistants.on("metadata")],
} as const;

export const THREAD_VISIBLE = {
  threadVisible: ["fragment", ({ rights }: Creation) => rights.threads.on("t.metadata")],
} as const;

type Sql = Readonly<Record<keyof typeof CREATE_PARAMETERS, string>>;

const starts = (sql: Sql): string => `${sql.workerId} is not null and graph_id = any(${sql.graphIds})`;

/** Index: assistants_pkey. */
export const assistant = (sql: Sql): string => `assistant as (
  select assistant_id, graph_id, config, context, metadata, ${starts(sql)} as starts
  from threadloom.assistants 
  where assistant_id = ${sql.assistantId} and ${sql.assistantVisible} and (${sql.mayWait} or ${starts(sql)}))`;

export const GRAPH = "jsonb_build_object('graph_id', a.graph_id, 'assistant_id', a.assistant_id)";
// `||` alone would store large metadata and rewrite the index even without a change: PostgreSQL compares
// compressed values byte by byte.
export const WITH_GRAPH = `case when t.metadata @> ${GRAPH} then t.metadata else t.metadata || ${GRAPH} end`;

const withGiven = (
  sql: Pick<Sql, "keptConfig">,
  key: "configurable" | "context",
): string => `case when ${sql.keptConfig} ? '${key}'
    then jsonb_build_object('${key}', coalesce(t.config -> '${key}', '{}') || (${sql.keptConfig} -> '${key}'))
    else '{}' end`;

/**
 * An unchanged value keeps its expression, so PostgreSQL does not store a long value again with each run. If
 * the merged value is too large, only the request's own values are kept.
 */
export const keptConfig = (sql: Pick<Sql, "keptConfig">): string => {
  const kept = `t.config || ${withGiven(sql, "configurable")} || ${withGiven(sql, "context")}`;
  return `case when ${sql.keptConfig} is null or t.config = (${kept}) then t.config
    when ${hasRoomFor(kept)} then ${kept} else t.config - array['configurable', 'context'] || ${sql.keptConfig} end`;
};

/** The request's override the thread's, which override the assistant's. */
export const mergedColumns = (
  asked: Readonly<Record<"metadata" | "config" | "context", string>>,
): string => `a.metadata || t.metadata || ${asked.metadata},
    a.config || (t.config - 'context') || ${asked.config} || jsonb_build_object('configurable',
      coalesce(a.config -> 'configurable', '{}') || coalesce(t.config -> 'configurable', '{}')
        || coalesce(${asked.config} -> 'configurable', '{}')),
    a.context || coalesce(t.config -> 'context', '{}') || ${asked.context}`;

/**
 * `settled`: the thread's state has not changed since this statement's snapshot, which the check for
 * checkpoints reads; a statement that waited for the thread's row may have an older snapshot. `behind` and
 * `turn`: see engine/queue/README.md. Index: checkpoints_pkey.
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
