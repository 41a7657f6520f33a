import { timestamp } from "../../platform/lib/timestamps.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { SentWebhook } from "../../engine/outbox/deliveries.ts";
import { fromFinalValues } from "../../engine/queue/final-values.ts";
import { shownKwargs } from "../../api/runs/record.ts";

/** `rollback` is the hosted service's word for a run without a record. */
export const shownStatus = (status: string): string => (status === "rolled-back" ? "rollback" : status);

/** engine/outbox/deliveries.ts does not even read much longer inputs. */
const KWARGS_CHARACTERS_AT_MOST = 4_000_000;

const kwargsOf = ({ kwargs: asked, ...row }: SentWebhook): { kwargs: JsonObject; omitted: string[] } => {
  const kwargs = asked === null ? undefined : (shownKwargs({ ...row, kwargs: asked }) as JsonObject);
  if (kwargs !== undefined && JSON.stringify(kwargs).length <= KWARGS_CHARACTERS_AT_MOST)
    return { kwargs, omitted: [] };
  return { kwargs: { webhook: row.url }, omitted: ["kwargs"] };
};

/**
 * Fields are named as in the hosted service (docs/decisions/037-webhooks.md). `omitted` names fields that were too
 * large.
 */
export const payloadOf = (
  row: SentWebhook,
  { sentAt, allowedFields }: { sentAt: Date; allowedFields: readonly string[] | undefined },
): Buffer => {
  const { kwargs, omitted } = kwargsOf(row);
  const { values, interrupts } = fromFinalValues(row.final_values);
  if (row.values_omitted) omitted.push("values");
  if (interrupts === "null") omitted.push("interrupts");
  const fields: Record<string, unknown> = {
    run_id: row.run_id,
    thread_id: row.thread_id,
    assistant_id: row.assistant_id,
    created_at: timestamp(row.run_created_at),
    updated_at: timestamp(row.run_ended_at),
    metadata: row.metadata,
    status: shownStatus(row.run_status),
    kwargs,
    multitask_strategy: row.multitask_strategy,
    run_started_at: row.run_started_at && timestamp(row.run_started_at),
    run_ended_at: timestamp(row.run_ended_at),
    webhook_sent_at: timestamp(sentAt),
    ...(row.error === null ? {} : { error: row.error }),
    ...(omitted.length === 0 ? {} : { omitted }),
  };
  const isWanted = (field: string): boolean => allowedFields?.includes(field) ?? true;
  const texts = Object.entries(fields)
    .filter(([field]) => isWanted(field))
    .map(([field, value]) => `${JSON.stringify(field)}:${JSON.stringify(value)}`);
  // The stored text, which may be megabytes, is not parsed.
  if (isWanted("values")) texts.push(`"values":${values ?? "null"}`);
  if (interrupts !== undefined && isWanted("interrupts")) texts.push(`"interrupts":${interrupts}`);
  return Buffer.from(`{${texts.join(",")}}`, "utf8");
};
