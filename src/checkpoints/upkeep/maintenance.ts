import type { Queryable } from "../../database/database.ts";
import { MERGED_BYTES_AT_MOST, metadataTooLarge } from "../../database/merging.ts";
import { invalid } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import { encode, treeText } from "../../values/encoding.ts";
import { isReservedMetadata } from "../rows/metadata.ts";
import { toJsonb } from "../../lib/jsonb.ts";

/*
 * Taking checkpoints away leaves elements and contents that nothing refers to any more. Elements are freed all but
 * the place: the first freed position after one that is still used stays, as a row without elements. A position that
 * was taken once is never taken again, so what other processes remember of a list stays true.
 */

/** Every segment and content that the thread's checkpoints and writes still name. */
const REFERENCED = `
kept_segments as materialized (
  select abs(r.segments[i]) as list_id, r.segments[i + 1] as first, r.segments[i + 2] as stop
  from (
    select segments from threadloom.checkpoints where thread_id = $1::uuid
    union all
    select segments from threadloom.checkpoint_writes where thread_id = $1::uuid
  ) as r
  cross join generate_series(1, cardinality(r.segments), 3) as i
),
kept_ranges as materialized (
  select list_id, range_agg(int8range(first, stop)) as ranges, array_agg(distinct stop) as stops
  from kept_segments group by list_id
),
kept_contents as materialized (
  select distinct content from (
    select unnest(contents) as content from threadloom.checkpoints where thread_id = $1::uuid
    union all
    select unnest(contents) from threadloom.checkpoint_writes where thread_id = $1::uuid
  ) as c
)`;

const FREE_ELEMENTS = `
with ${REFERENCED},
unused as (
  select e.list_id, e.position, coalesce(e.position = any(k.stops), false) as holds_place
  from threadloom.checkpoint_elements e
  left join kept_ranges k on k.list_id = e.list_id
  where e.thread_id = $1::uuid and e.count > 0
    and (k.list_id is null or not k.ranges && int8range(e.position, e.position + e.count))
),
emptied as (
  update threadloom.checkpoint_elements e set count = 0, elements = ''
  from unused u
  where u.holds_place and e.thread_id = $1::uuid and e.list_id = u.list_id and e.position = u.position
)
delete from threadloom.checkpoint_elements e using unused u
where not u.holds_place and e.thread_id = $1::uuid and e.list_id = u.list_id and e.position = u.position`;

const FREE_CONTENTS = `
with ${REFERENCED}
delete from threadloom.checkpoint_contents k
where k.thread_id = $1::uuid and not exists (select from kept_contents c where c.content = k.hash)`;

const freeUnreferenced = async (queryable: Queryable, threadId: string): Promise<void> => {
  await queryable.query(FREE_ELEMENTS, [threadId]);
  await queryable.query(FREE_CONTENTS, [threadId]);
};

/** Of one statement each, so that what a run wrote on another's checkpoint goes, too. */
const DELETE_RUN_CHECKPOINTS = `
with gone as (
  delete from threadloom.checkpoints where thread_id = $1::uuid and run_id = $2::uuid returning checkpoint_ns, checkpoint_id
)
delete from threadloom.checkpoint_writes w using gone g
where w.thread_id = $1::uuid and w.checkpoint_ns = g.checkpoint_ns and w.checkpoint_id = g.checkpoint_id`;
const DELETE_RUN_WRITES =
  "delete from threadloom.checkpoint_writes where thread_id = $1::uuid and run_id = $2::uuid";

/** What a run has stored is gone, and with it what others wrote on its checkpoints. */
export const deleteRun = async (queryable: Queryable, threadId: string, runId: string): Promise<void> => {
  await queryable.query(DELETE_RUN_CHECKPOINTS, [threadId, runId]);
  await queryable.query(DELETE_RUN_WRITES, [threadId, runId]);
  await freeUnreferenced(queryable, threadId);
};

const DELETE_THREAD = `
with gone_elements as (delete from threadloom.checkpoint_elements where thread_id = $1::uuid),
gone_contents as (delete from threadloom.checkpoint_contents where thread_id = $1::uuid),
gone_writes as (delete from threadloom.checkpoint_writes where thread_id = $1::uuid)
delete from threadloom.checkpoints where thread_id = $1::uuid`;

export const deleteThread = async (queryable: Queryable, threadId: string): Promise<void> => {
  await queryable.query(DELETE_THREAD, [threadId]);
};

const COPY_THREAD = `
with new_elements as (
  insert into threadloom.checkpoint_elements (thread_id, list_id, position, count, elements)
  select $2::uuid, list_id, position, count, elements from threadloom.checkpoint_elements where thread_id = $1::uuid
),
new_contents as (
  insert into threadloom.checkpoint_contents (thread_id, hash, content)
  select $2::uuid, hash, content from threadloom.checkpoint_contents where thread_id = $1::uuid
),
new_writes as (
  insert into threadloom.checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id, task_name, written_at, writes,
    segments, contents)
  select $2::uuid, checkpoint_ns, checkpoint_id, task_id, run_id, task_name, written_at, writes, segments, contents
  from threadloom.checkpoint_writes where thread_id = $1::uuid
)
insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text, shape,
  record, segments, contents)
select $2::uuid, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text, shape, record, segments,
  contents
from threadloom.checkpoints where thread_id = $1::uuid`;

export const copyThread = async (queryable: Queryable, from: string, to: string): Promise<void> => {
  await queryable.query(COPY_THREAD, [from, to]);
};

/*
 * Kept are: the newest checkpoint of the root graph; the newest one of each subgraph that has a memory of its own
 * (its namespace names no task, which has a colon) or is in the middle of the step after the root's newest. A
 * DeltaChannel's value is not in the newest checkpoint but in the writes since its last snapshot: as many ancestors
 * are kept, too.
 */
const KEEP_LATEST = `
with recursive head as (
  select checkpoint_id from threadloom.checkpoints
  where thread_id = $1::uuid and checkpoint_ns = '' order by checkpoint_id desc limit 1
),
newest as (
  select distinct on (checkpoint_ns) checkpoint_ns, checkpoint_id, parent_id,
    (select coalesce(max((counter.value -> 1)::integer), 0)
     from jsonb_each(case jsonb_typeof(metadata -> 'counters_since_delta_snapshot')
       when 'object' then metadata -> 'counters_since_delta_snapshot' else '{}' end) as counter) as depth
  from threadloom.checkpoints where thread_id = $1::uuid
  order by checkpoint_ns, checkpoint_id desc
),
kept (checkpoint_ns, checkpoint_id, parent_id, depth) as (
  select n.checkpoint_ns, n.checkpoint_id, n.parent_id, n.depth from newest n
  where n.checkpoint_ns not like '%:%' or n.checkpoint_id > (select checkpoint_id from head)
  union all
  select c.checkpoint_ns, c.checkpoint_id, c.parent_id, kept.depth - 1
  from kept join threadloom.checkpoints c
    on c.thread_id = $1::uuid and c.checkpoint_ns = kept.checkpoint_ns and c.checkpoint_id = kept.parent_id
  where kept.depth > 0
),
gone as (
  delete from threadloom.checkpoints c
  where c.thread_id = $1::uuid and not exists (
    select from kept k where k.checkpoint_ns = c.checkpoint_ns and k.checkpoint_id = c.checkpoint_id)
),
gone_writes as (
  delete from threadloom.checkpoint_writes w
  where w.thread_id = $1::uuid and not exists (
    select from kept k where k.checkpoint_ns = w.checkpoint_ns and k.checkpoint_id = w.checkpoint_id)
)
update threadloom.checkpoints c set parent_id = null
from kept k
where c.thread_id = $1::uuid and c.checkpoint_ns = k.checkpoint_ns and c.checkpoint_id = k.checkpoint_id
  and c.parent_id is not null and not exists (
    select from kept p where p.checkpoint_ns = c.checkpoint_ns and p.checkpoint_id = c.parent_id)`;

export const keepLatest = async (queryable: Queryable, threadId: string): Promise<void> => {
  await queryable.query(KEEP_LATEST, [threadId]);
  await freeUnreferenced(queryable, threadId);
};

const LOCK_HEAD = `
select c.checkpoint_id, coalesce(c.metadata_text, (s.metadata || c.metadata)::text) as metadata
from threadloom.checkpoints c join threadloom.checkpoint_shapes s on s.hash = c.shape
where c.thread_id = $1::uuid and c.checkpoint_ns = ''
order by c.checkpoint_id desc limit 1 for update of c`;

const REPLACE_METADATA = `
update threadloom.checkpoints set metadata = $3::jsonb, metadata_text = $4
where thread_id = $1::uuid and checkpoint_ns = '' and checkpoint_id = $2::uuid`;

/**
 * Merges metadata into those of the root graph's newest checkpoint; its id. In a transaction: the head is locked.
 * Throws `invalid` for keys that have a meaning of their own there, and for metadata that would grow too large.
 */
export const mergeHeadMetadata = async (
  queryable: Queryable,
  threadId: string,
  metadata: JsonObject,
): Promise<string | undefined> => {
  const rows = await queryable.query<{ checkpoint_id: string; metadata: string }>(LOCK_HEAD, [threadId]);
  const [head] = rows;
  if (head === undefined) return undefined;
  const reserved = Object.keys(metadata).find(isReservedMetadata);
  if (reserved !== undefined) throw invalid(`'metadata': the key '${reserved}' is reserved.`);
  const merged = { ...(JSON.parse(head.metadata) as JsonObject), ...(encode(metadata) as JsonObject) };
  const text = treeText(merged);
  if (Buffer.byteLength(text) > MERGED_BYTES_AT_MOST) throw metadataTooLarge();
  const { jsonb, exact } = toJsonb(text);
  await queryable.query(REPLACE_METADATA, [threadId, head.checkpoint_id, jsonb, exact ?? null]);
  return head.checkpoint_id;
};
