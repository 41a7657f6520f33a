import type { ColumnType, Generated, Selectable } from "kysely";
import type { JsonObject, JsonValue } from "../lib/json.ts";

/** Columns as in `migrations/`. */

/** Written as JSON text or as a value, read as the parsed value. */
type Json<T = JsonObject> = ColumnType<T, T | string, T | string>;
type JsonWithDefault<T = JsonObject> = ColumnType<T, T | string | undefined, T | string>;
type NullableJson = Json<JsonObject | null>;
type Timestamp = ColumnType<Date, Date | string | undefined, Date | string>;
type NullableTimestamp = ColumnType<Date | null, Date | string | null | undefined, Date | string | null>;

export type ThreadStatus = "idle" | "busy" | "interrupted" | "error";
export type RunStatus = "pending" | "running" | "error" | "success" | "timeout" | "interrupted";
export type MultitaskStrategy = "reject" | "enqueue" | "interrupt" | "rollback";
export type CancelAction = "interrupt" | "rollback";
/** `replaced`: by a newer run of the thread. `disconnected`: by the client. */
export type CancelReason = "requested" | "taken" | "replaced" | "disconnected";

interface AssistantsTable {
  assistant_id: string;
  graph_id: string;
  name: string;
  description: string | null;
  config: JsonWithDefault;
  context: JsonWithDefault;
  metadata: JsonWithDefault;
  version: number;
  /** For system assistants: the last defaults of the deployment. */
  defaults: ColumnType<JsonObject | null, never, never>;
  created_at: Timestamp;
  updated_at: Timestamp;
}

interface AssistantVersionsTable {
  assistant_id: string;
  version: number;
  graph_id: string;
  name: string;
  description: string | null;
  config: Json;
  context: Json;
  metadata: Json;
  created_at: Timestamp;
}

/** The columns that composed queries name. */
interface ThreadsTable {
  thread_id: string;
  status: Generated<ThreadStatus>;
  metadata: JsonWithDefault;
  created_at: Timestamp;
  updated_at: Timestamp;
}

interface RunsTable {
  run_id: string;
  thread_id: string;
  assistant_id: string;
  graph_id: string;
  status: RunStatus;
  metadata: JsonWithDefault;
  config: JsonWithDefault;
  context: JsonWithDefault;
  kwargs: Json;
  multitask_strategy: MultitaskStrategy;
  resumable: Generated<boolean>;
  delete_thread: Generated<boolean>;
  error: ColumnType<JsonObject | null, JsonObject | string | null | undefined, JsonObject | string | null>;
  cancel_action: CancelAction | null;
  /** Only run records in API answers show the reason. */
  cancel_reason: ColumnType<never, never, CancelReason | null>;
  attempt: Generated<number>;
  lost_attempts: Generated<number>;
  /** The newest attempt's place among all attempts of the thread; 0 before the first. */
  turn: Generated<number>;
  worker_id: string | null;
  reader_id: string | null;
  /** The attempt whose events are not all in the log, although another process reads them there. */
  lease_until: NullableTimestamp;
  available_at: Timestamp;
  started_at: NullableTimestamp;
  /** The form that `webhookParts` reads. `kwargs` has the client's form. */
  webhook: ColumnType<never, string | null | undefined, never>;
  /** For a rollback, see engine/queue/sql/forget.ts. */
  replaced_metadata: ColumnType<never, JsonObject | string | null | undefined, JsonObject | string | null>;
  replaced_config: ColumnType<never, JsonObject | string | null | undefined, JsonObject | string | null>;
  /** For the run's graph. No API answer contains it. */
  auth_user: ColumnType<never, JsonObject | string | null | undefined, never>;
  /** See engine/queue/counted-as.ts. */
  caller: ColumnType<never, string | null | undefined, never>;
  created_at: Timestamp;
  updated_at: Timestamp;
}

interface CronsTable {
  cron_id: string;
  assistant_id: string;
  thread_id: string | null;
  schedule: string;
  timezone: string | null;
  end_time: NullableTimestamp;
  enabled: boolean;
  /** Null if the cron has a thread. */
  on_run_completed: "delete" | "keep" | null;
  user_id: string | null;
  /** For the graphs of the runs. No API answer contains it. */
  auth_user: ColumnType<never, JsonObject | string | null | undefined, JsonObject | string | null>;
  /** See engine/queue/counted-as.ts. */
  caller: ColumnType<never, string | null | undefined, string | null>;
  metadata: JsonWithDefault;
  payload: string;
  next_run_date: NullableTimestamp;
  error: string | null;
  created_at: Timestamp;
  updated_at: Timestamp;
}

interface ApiKeysTable {
  key_id: string;
  /** SHA-256 of the key. */
  key_hash: Buffer;
  name: string;
  /** As stored: a newer version may have other scopes. */
  scopes: string[];
  expires_at: NullableTimestamp;
  created_at: Timestamp;
  last_used_at: NullableTimestamp;
  /** Revoked keys stay: a key in the table means that access is controlled. */
  revoked_at: NullableTimestamp;
}

interface StoreItemsTable {
  namespace: string[];
  key: string;
  value: Json<JsonValue>;
  ttl_minutes: number | null;
  expires_at: NullableTimestamp;
  created_at: Timestamp;
  updated_at: Timestamp;
}

/** See engine/outbox/README.md. The columns of the other kind are null. */
interface DeliveriesTable {
  /** A webhook has the id of its run. */
  delivery_id: string;
  kind: "webhook" | "push";
  thread_id: string;
  /** As `runs.caller`; empty: no named caller. */
  caller: ColumnType<string, string | undefined, string>;
  /** A host, or a digest of the address; empty for this server's own routes. */
  receiver: string;
  /** `idle`: no run of the task has ended since the push notification was configured. */
  state: "idle" | "pending" | "delivered" | "failed";
  /** The fence. */
  attempts: number;
  failures: number;
  /** The time to send next. During sending: the time at which the sender counts as dead. */
  due_at: Timestamp;
  give_up_at: Timestamp;
  last_attempt_at: NullableTimestamp;
  last_status: number | null;
  last_error: string | null;
  settled_at: NullableTimestamp;
  created_at: Timestamp;
  /** The first run of a push notification's task. */
  task_run_id: string | null;
  /** JSON of a `PushConfig` (engine/outbox/pushes.ts). */
  configuration: string | null;
  run_id: string | null;
  assistant_id: string | null;
  graph_id: string | null;
  url: string | null;
  /** An `EndStatus` of engine/queue/attempts.ts. */
  run_status: string | null;
  error: JsonObject | null;
  metadata: Json;
  config: Json;
  context: Json;
  /** Null: too large to send. */
  kwargs: NullableJson;
  multitask_strategy: "reject" | "enqueue" | "interrupt" | "rollback" | null;
  run_created_at: NullableTimestamp;
  run_started_at: NullableTimestamp;
  run_ended_at: NullableTimestamp;
  /** JSON, as engine/queue/final-values.ts stores it; null: the run had none, or they were too large. */
  final_values: Buffer | null;
  values_omitted: boolean | null;
}

export interface Tables {
  api_keys: ApiKeysTable;
  assistants: AssistantsTable;
  assistant_versions: AssistantVersionsTable;
  threads: ThreadsTable;
  runs: RunsTable;
  crons: CronsTable;
  store_items: StoreItemsTable;
  deliveries: DeliveriesTable;
}

export type AssistantRow = Omit<Selectable<AssistantsTable>, "defaults">;
export type AssistantVersionRow = Selectable<AssistantVersionsTable>;
export type RunRow = Selectable<RunsTable>;
/** No API answer contains this row. */
export type ExecutedRunRow = RunRow & {
  /** As the graph receives it; null: no user created the run. */
  auth_user: JsonObject | null;
};
export type ClaimedRunRow = ExecutedRunRow & {
  /** True: the thread has no checkpoint, and only this attempt can write one. Otherwise unknown. */
  starts_empty?: boolean;
};
/** See engine/endings.ts. */
export type EndedRun = Pick<
  RunRow,
  "run_id" | "thread_id" | "graph_id" | "assistant_id" | "attempt" | "available_at" | "started_at"
>;
export type CronRow = Selectable<CronsTable>;
export type ApiKeyRow = Selectable<ApiKeysTable>;
type StoredDelivery = Selectable<DeliveriesTable>;
/** Of a webhook, or of a push notification: null for the other kind. */
type OfOneKind =
  | ("run_id" | "assistant_id" | "graph_id" | "url" | "run_status" | "multitask_strategy" | "run_created_at")
  | ("run_ended_at" | "values_omitted" | "task_run_id" | "configuration");
export type DeliveryRow = Omit<StoredDelivery, OfOneKind> & {
  [Column in OfOneKind]: NonNullable<StoredDelivery[Column]>;
};
export type StoreItemRow = Selectable<StoreItemsTable>;
export type { JsonObject, JsonValue };
