import type { RecordEnds } from "../queue/sql/ended.ts";
import { webhookParts } from "../../platform/domain/webhook-address.ts";

const { url, receiver } = webhookParts("r.webhook");

/**
 * Bytes of `kwargs`, `config` and `context` that a delivery may include. A request body may have 200 MB, and
 * 16 of these exceed the memory of a process.
 */
const ASKED_BYTES_AT_MOST = 6_000_000;

const IS_DELIVERABLE = `octet_length(r.kwargs::text) + octet_length(r.config::text) + octet_length(r.context::text) <= ${ASKED_BYTES_AT_MOST}`;

/**
 * Includes the payload, because run and thread may be deleted a moment later. `on conflict`: the run has to
 * end even if a row exists against expectation. Index: runs_pkey.
 */
export const recordDeliveries: RecordEnds = (ended, { finalValues, valuesOmitted }) => `record_deliveries as (
  insert into threadloom.webhook_deliveries (run_id, thread_id, assistant_id, graph_id, url, receiver, caller, run_status,
    error, metadata, config, context, kwargs, multitask_strategy, run_created_at, run_started_at, final_values, values_omitted)
  select r.run_id, r.thread_id, r.assistant_id, r.graph_id, ${url},
    ${receiver}, coalesce(r.caller, ''),
    e.status, e.error, r.metadata, case when asked.is_deliverable then r.config else '{}' end,
    case when asked.is_deliverable then r.context else '{}' end, case when asked.is_deliverable then r.kwargs end,
    r.multitask_strategy, r.created_at, r.started_at, ${finalValues}, ${valuesOmitted}
  from ${ended} e join threadloom.runs r on r.thread_id = e.thread_id and r.run_id = e.run_id
    cross join lateral (select ${IS_DELIVERABLE} as is_deliverable) as asked
  where r.webhook is not null
  on conflict do nothing)`;
