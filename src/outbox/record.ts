import type { RecordEnds } from "../queue/sql/ended.ts";

/**
 * Stores a delivery for each run that ends and has a `webhook`, with all that is to be told of it: run and thread may be
 * gone a moment later. `receiver`: host and port, as the usual spelling of an address has them. A run ends once, so a
 * conflict can't be; should there be one, the run has to end all the same. Index: runs_pkey.
 */
export const recordDeliveries: RecordEnds = (ended, { finalValues, valuesOmitted }) => `record_deliveries as (
  insert into threadloom.webhook_deliveries (run_id, thread_id, assistant_id, graph_id, url, receiver, run_status, error,
    metadata, config, context, kwargs, multitask_strategy, run_created_at, run_started_at, final_values, values_omitted)
  select r.run_id, r.thread_id, r.assistant_id, r.graph_id, r.webhook,
    case when r.webhook like '/%' then ''
      else coalesce(substring(r.webhook from '^https?://(?:[^/?#]*@)?([^/?#]+)'), r.webhook) end,
    e.status, e.error, r.metadata, r.config, r.context, r.kwargs, r.multitask_strategy, r.created_at, r.started_at,
    ${finalValues}, ${valuesOmitted}
  from ${ended} e join threadloom.runs r on r.thread_id = e.thread_id and r.run_id = e.run_id
  where r.webhook is not null
  on conflict (run_id) do nothing)`;
