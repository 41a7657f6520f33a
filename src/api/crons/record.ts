import type { CronRow } from "../../platform/database/tables.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import type { CronExtract, CronRecord } from "./schemas.ts";

export type CronRowNow = CronRow & { now: Date };

const timeOrNull = (time: Date | null): string | null => (time === null ? null : timestamp(time));

/** As in the hosted service. */
const payloadOf = ({ payload, assistant_id, schedule }: CronRow): JsonObject => ({
  ...(JSON.parse(payload) as JsonObject),
  assistant_id,
  schedule,
});

export const toCron = (row: CronRow): CronRecord => ({
  cron_id: row.cron_id,
  assistant_id: row.assistant_id,
  thread_id: row.thread_id,
  on_run_completed: row.on_run_completed,
  end_time: timeOrNull(row.end_time),
  schedule: row.schedule,
  timezone: row.timezone,
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
  user_id: row.user_id,
  payload: payloadOf(row),
  next_run_date: timeOrNull(row.next_run_date),
  metadata: row.metadata,
  enabled: row.enabled,
  error: row.error,
});

export const toExtract = (row: CronRowNow, select: readonly (keyof CronExtract)[]): CronExtract => {
  const whole: CronExtract = { ...toCron(row), now: timestamp(row.now) };
  return Object.fromEntries(select.map((field) => [field, whole[field]]));
};
