import type { ColumnType } from "kysely";
import type { JsonObject } from "../lib/json.ts";

type Json = ColumnType<JsonObject, JsonObject | string, JsonObject | string>;
type NullableJson = ColumnType<JsonObject | null, JsonObject | string | null, JsonObject | string | null>;
type Timestamp = ColumnType<Date, Date | string | undefined, Date | string>;
type NullableTimestamp = ColumnType<Date | null, Date | string | null | undefined, Date | string | null>;

/** See src/engine/outbox/README.md. */
export interface WebhookDeliveriesTable {
  run_id: string;
  thread_id: string;
  assistant_id: string;
  graph_id: string;
  url: string;
  /** A host, or a digest of `url`; empty for this server's own routes. */
  receiver: string;
  /** As `runs.caller`; empty: no named caller. */
  caller: ColumnType<string, string | undefined, string>;
  /** An `EndStatus` of engine/queue/attempts.ts. */
  run_status: string;
  error: JsonObject | null;
  metadata: Json;
  config: Json;
  context: Json;
  /** Null: too large to send. */
  kwargs: NullableJson;
  multitask_strategy: "reject" | "enqueue" | "interrupt" | "rollback";
  run_created_at: Timestamp;
  run_started_at: NullableTimestamp;
  run_ended_at: Timestamp;
  /** JSON, as engine/queue/final-values.ts stores it; null: the run had none, or they were too large. */
  final_values: Buffer | null;
  values_omitted: boolean;
  state: "pending" | "delivered" | "failed";
  /** The fence: each claim and each replay increments it. */
  attempts: number;
  failures: number;
  /** When to send next; during sending: when the sender counts as dead. */
  due_at: Timestamp;
  give_up_at: Timestamp;
  last_attempt_at: NullableTimestamp;
  last_status: number | null;
  last_error: string | null;
  settled_at: NullableTimestamp;
}
