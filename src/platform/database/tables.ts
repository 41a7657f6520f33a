import type { ColumnType, Generated, Selectable } from "kysely";
import type { JsonObject, JsonValue } from "../lib/json.ts";
import type { WebhookDeliveriesTable } from "./outbox-table.ts";

/**
 * The tables as Kysely sees them: one interface per table, columns named as in `migrations/`.
 * Row types for reading and writing are derived from these, never written by hand.
 */

/** Written as JSON text or as a value that `pg` stringifies, read as the parsed value. */
type Json<T = JsonObject> = ColumnType<T, T | string, T | string>;
type JsonWithDefault<T = JsonObject> = ColumnType<T, T | string | undefined, T | string>;
type Timestamp = ColumnType<Date, Date | string | undefined, Date | string>;
type NullableTimestamp = ColumnType<Date | null, Date | string | null | undefined, Date | string | null>;

export type ThreadStatus = "idle" | "busy" | "interrupted" | "error";
export type RunStatus = "pending" | "running" | "error" | "success" | "timeout" | "interrupted";
export type MultitaskStrategy = "reject" | "enqueue" | "interrupt" | "rollback";
export type CancelAction = "interrupt" | "rollback";
/** By whom a run was cancelled: a request, one that says `taken`, a newer run of its thread, its client that has left. */
export type CancelReason = "requested" | "taken" | "replaced" | "disconnected";

export interface EncryptionKeysTable {
  key_id: string;
  proof: string;
  created_at: Timestamp;
}

export interface AssistantsTable {
  assistant_id: string;
  graph_id: string;
  name: string;
  description: string | null;
  config: JsonWithDefault;
  context: JsonWithDefault;
  metadata: JsonWithDefault;
  version: number;
  /** Of those that graph ids stand for: what the deployment said last. */
  defaults: ColumnType<JsonObject | null, never, never>;
  created_at: Timestamp;
  updated_at: Timestamp;
}

export interface AssistantVersionsTable {
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

export interface ThreadsTable {
  thread_id: string;
  status: Generated<ThreadStatus>;
  metadata: JsonWithDefault;
  config: JsonWithDefault;
  interrupts: JsonWithDefault;
  error: ColumnType<JsonObject | null, JsonObject | string | null | undefined, JsonObject | string | null>;
  unfinished_runs: Generated<number>;
  /** Grows with each run that is created, and with each attempt that goes back to the queue: see engine/queue/README.md. */
  turns: Generated<number>;
  ttl_strategy: "delete" | "keep_latest" | null;
  ttl_minutes: number | null;
  expires_at: NullableTimestamp;
  created_at: Timestamp;
  updated_at: Timestamp;
  state_updated_at: Timestamp;
  /** Grows with each change of the row. Never past 2^53, but `pg` answers a bigint as text. */
  version: ColumnType<string, never, string>;
  /** What `status` is when nothing runs; kept by a trigger. */
  resting_status: ColumnType<Exclude<ThreadStatus, "busy">, never, never>;
  /** The ten minutes in which the times lie: generated, and indexed in their place. */
  updated_bin: ColumnType<Date, never, never>;
  state_updated_bin: ColumnType<Date, never, never>;
  expires_bin: ColumnType<Date | null, never, never>;
}

export interface RunsTable {
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
  /** For records alone: who executes a run does not read it. */
  cancel_reason: ColumnType<never, never, CancelReason | null>;
  attempt: Generated<number>;
  lost_attempts: Generated<number>;
  /** The newest attempt's place among all attempts of the thread, in the order in which they began; 0 before the first. */
  turn: Generated<number>;
  worker_id: string | null;
  reader_id: string | null;
  /** The attempt whose events are not all in the log, though a process is announced that reads them there. */
  unlogged_attempt: ColumnType<never, never, number | null>;
  lease_until: NullableTimestamp;
  available_at: Timestamp;
  /** When the first attempt began. */
  started_at: NullableTimestamp;
  /** Whom its end is told, as engine/queue/webhook-address.ts stores it; for the statements that end runs alone. `kwargs` has it as it was given. */
  webhook: ColumnType<never, string | null | undefined, never>;
  /** For a rollback alone, see engine/queue/sql/forget.ts. */
  replaced_metadata: ColumnType<never, JsonObject | string | null | undefined, JsonObject | string | null>;
  /** The same of its thread's config. */
  replaced_config: ColumnType<never, JsonObject | string | null | undefined, JsonObject | string | null>;
  /** The user who created the run, for its graph alone: no answer of the API has it. */
  auth_user: ColumnType<never, JsonObject | string | null | undefined, never>;
  /** Who created the run, for counting alone: see engine/queue/counted-as.ts. */
  caller: ColumnType<never, string | null | undefined, never>;
  created_at: Timestamp;
  updated_at: Timestamp;
}

export interface RunEventsTable {
  thread_id: string;
  run_id: string;
  /** `pg` answers a bigint as text; statements make a float8 of it. */
  seq: ColumnType<string, number, number>;
  /** The event's id within its thread, see engine/events/event-ids.ts; null of an attempt that has no turn. */
  thread_seq: ColumnType<string | null, number | null, number | null>;
  event: string;
  data: string;
  checkpoint_id: string | null;
  created_at: Timestamp;
}

export interface CronsTable {
  cron_id: string;
  assistant_id: string;
  thread_id: string | null;
  schedule: string;
  timezone: string | null;
  end_time: NullableTimestamp;
  enabled: boolean;
  /** Null where the cron has a thread. */
  on_run_completed: "delete" | "keep" | null;
  user_id: string | null;
  /** Whose its runs are, for their graphs alone: no answer of the API has it. */
  auth_user: ColumnType<never, JsonObject | string | null | undefined, JsonObject | string | null>;
  /** By whom its runs are counted: see engine/queue/counted-as.ts. */
  caller: ColumnType<never, string | null | undefined, string | null>;
  metadata: JsonWithDefault;
  /** JSON text of an object: the request for a run. */
  payload: string;
  next_run_date: NullableTimestamp;
  error: string | null;
  created_at: Timestamp;
  updated_at: Timestamp;
}

export interface ApiKeysTable {
  key_id: string;
  /** SHA-256 of the key. */
  key_hash: Buffer;
  name: string;
  /** As stored: a newer version may know others. */
  scopes: string[];
  expires_at: NullableTimestamp;
  created_at: Timestamp;
  last_used_at: NullableTimestamp;
  /** A revoked key stays: it says that access is controlled. */
  revoked_at: NullableTimestamp;
}

export interface StoreItemsTable {
  namespace: string[];
  key: string;
  value: Json<JsonValue>;
  ttl_minutes: number | null;
  expires_at: NullableTimestamp;
  created_at: Timestamp;
  updated_at: Timestamp;
}

export interface Tables {
  api_keys: ApiKeysTable;
  assistants: AssistantsTable;
  assistant_versions: AssistantVersionsTable;
  threads: ThreadsTable;
  runs: RunsTable;
  run_events: RunEventsTable;
  encryption_keys: EncryptionKeysTable;
  crons: CronsTable;
  store_items: StoreItemsTable;
  webhook_deliveries: WebhookDeliveriesTable;
}

/** What is read of an assistant. */
export type AssistantRow = Omit<Selectable<AssistantsTable>, "defaults">;
export type AssistantVersionRow = Selectable<AssistantVersionsTable>;
export type ThreadRow = Selectable<ThreadsTable>;
export type RunRow = Selectable<RunsTable>;
/** A run as whoever executes it reads it; no answer of the API is made of it. */
export type ExecutedRunRow = RunRow & {
  /** The user whose run it is, as its graph is told; null: no user created it. */
  auth_user: JsonObject | null;
};
/** A run as the statement that claimed it returns it. */
export type ClaimedRunRow = ExecutedRunRow & {
  /** True: the thread has no checkpoint, and only this attempt can write one. Absent or false: it may have some. */
  starts_empty?: boolean;
};
/** What is told of a run when it has ended, see engine/ended-line.ts. */
export type EndedRun = Pick<
  RunRow,
  "run_id" | "thread_id" | "graph_id" | "assistant_id" | "attempt" | "available_at" | "started_at"
>;
export type CronRow = Selectable<CronsTable>;
export type ApiKeyRow = Selectable<ApiKeysTable>;
export type WebhookDeliveryRow = Selectable<WebhookDeliveriesTable>;
export type StoreItemRow = Selectable<StoreItemsTable>;
export type { JsonObject, JsonValue };
