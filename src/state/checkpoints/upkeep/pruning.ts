import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { freeUnreferenced } from "./freeing.ts";

/**
 * Keeps the newest checkpoint of the root graph, of subgraphs with their own memory (no colon in the namespace), and of
 * the current step's subgraphs. Also keeps `depth` ancestors for DeltaChannels: as many as the steps since the oldest
 * of their last snapshots (element 1 of a counter; element 0 counts updates).
 */
const KEEP_LATEST = statement(
  { threadId: "uuid" },
  (sql) => `
with recursive head as (
  select checkpoint_id from threadloom.checkpoints
  where thread_id = ${sql.threadId} and checkpoint_ns = '' order by checkpoint_id desc limit 1
),
newest as (
  select distinct on (checkpoint_ns) checkpoint_ns, checkpoint_id, parent_id,
    (select coalesce(max((counter.value -> 1)::integer), 0)
     from jsonb_each(case jsonb_typeof(metadata -> 'counters_since_delta_snapshot')
       when 'object' then metadata -> 'counters_since_delta_snapshot' else '{}' end) as counter) as depth
  from threadloom.checkpoints where thread_id = ${sql.threadId}
  order by checkpoint_ns, checkpoint_id desc
),
kept (checkpoint_ns, checkpoint_id, parent_id, depth) as (
  select n.checkpoint_ns, n.checkpoint_id, n.parent_id, n.depth from newest n
  where n.checkpoint_ns not like '%:%' or n.checkpoint_id > (select checkpoint_id from head)
  union all
  select c.checkpoint_ns, c.checkpoint_id, c.parent_id, kept.depth - 1
  from kept join threadloom.checkpoints c
    on c.thread_id = ${sql.threadId} and c.checkpoint_ns = kept.checkpoint_ns and c.checkpoint_id = kept.parent_id
  where kept.depth > 0
),
gone as (
  delete from threadloom.checkpoints c
  where c.thread_id = ${sql.threadId} and not exists (
    select from kept k where k.checkpoint_ns = c.checkpoint_ns and k.checkpoint_id = c.checkpoint_id)
),
gone_writes as (
  delete from threadloom.checkpoint_writes w
  where w.thread_id = ${sql.threadId} and not exists (
    select from kept k where k.checkpoint_ns = w.checkpoint_ns and k.checkpoint_id = w.checkpoint_id)
)
update threadloom.checkpoints c set parent_id = null
from kept k
where c.thread_id = ${sql.threadId} and c.checkpoint_ns = k.checkpoint_ns and c.checkpoint_id = k.checkpoint_id
  and c.parent_id is not null and not exists (
    select from kept p where p.checkpoint_ns = c.checkpoint_ns and p.checkpoint_id = c.parent_id)`,
);

export const keepLatest = async (queryable: Queryable, threadId: string): Promise<void> => {
  await KEEP_LATEST.query(queryable, { threadId });
  await freeUnreferenced(queryable, threadId);
};
