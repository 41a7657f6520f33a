import type { Queryable } from "../../platform/database/database.ts";
import type { RunRow } from "../../platform/database/tables.ts";

const OF_A_RUN = [
  "run_id",
  "thread_id",
  "assistant_id",
  "graph_id",
  "status",
  "metadata",
  "config",
  "context",
  "kwargs",
  "multitask_strategy",
  "resumable",
  "delete_thread",
  "error",
  "cancel_action",
  "attempt",
  "lost_attempts",
  "turn",
  "worker_id",
  "reader_id",
  "lease_until",
  "available_at",
  "started_at",
  "created_at",
  "updated_at",
] as const satisfies readonly (keyof RunRow)[];

/** Fails to compile if the list above misses a column of `RunRow`. */
const complete: Exclude<keyof RunRow, (typeof OF_A_RUN)[number]> extends never ? true : false = true;
void complete;

export const RUN_COLUMNS = OF_A_RUN.map((column) => `r.${column}`).join(", ");

export const SHOWN_COLUMNS = `${RUN_COLUMNS}, r.cancel_reason`;

export const EXECUTED_COLUMNS = `${RUN_COLUMNS}, r.auth_user`;

export const ENDED_COLUMNS =
  "r.run_id, r.thread_id, r.graph_id, r.assistant_id, r.attempt, r.available_at, r.started_at";

/** Decrypts rows of `threadloom.runs`. */
export const openRuns = <Row extends Pick<RunRow, "run_id" | "thread_id" | "assistant_id">>(
  { encryption }: Queryable,
  rows: Row[],
): Row[] => encryption.decryptedRows("runs", rows);
