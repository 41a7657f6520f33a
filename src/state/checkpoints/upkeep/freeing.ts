import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

/** `gone`: deleted contents. */
export const NOTE_UNUSED = (gone: string): string => `
insert into threadloom.unused_objects (thread_id, object_id)
select thread_id, object_id from ${gone} where object_id is not null on conflict do nothing`;

/*
 * A position is never reused, so that the caches of other processes stay correct. The first freed position after a used
 * one stays as a row without elements.
 */

const referenced = (sql: { readonly threadId: string }): string => `
kept_segments as materialized (
  select abs(r.segments[i]) as list_id, r.segments[i + 1] as first, r.segments[i + 2] as stop
  from (
    select segments from threadloom.checkpoints where thread_id = ${sql.threadId}
    union all
    select segments from threadloom.checkpoint_writes where thread_id = ${sql.threadId}
  ) as r
  cross join generate_series(1, cardinality(r.segments), 3) as i
),
kept_ranges as materialized (
  select list_id, range_agg(int8range(first, stop)) as ranges, array_agg(distinct stop) as stops
  from kept_segments group by list_id
),
kept_contents as materialized (
  select distinct content from (
    select unnest(contents) as content from threadloom.checkpoints where thread_id = ${sql.threadId}
    union all
    select unnest(contents) from threadloom.checkpoint_writes where thread_id = ${sql.threadId}
  ) as c
)`;

const FREE_ELEMENTS = statement(
  { threadId: "uuid" },
  (sql) => `
with ${referenced(sql)},
unused as (
  select e.list_id, e.position, coalesce(e.position = any(k.stops), false) as holds_place
  from threadloom.checkpoint_elements e
  left join kept_ranges k on k.list_id = e.list_id
  where e.thread_id = ${sql.threadId} and e.count > 0
    and (k.list_id is null or not k.ranges && int8range(e.position, e.position + e.count))
),
emptied as (
  update threadloom.checkpoint_elements e set count = 0, elements = '', strings = null, string_bytes = null
  from unused u
  where u.holds_place and e.thread_id = ${sql.threadId} and e.list_id = u.list_id and e.position = u.position
)
delete from threadloom.checkpoint_elements e using unused u
where not u.holds_place and e.thread_id = ${sql.threadId} and e.list_id = u.list_id and e.position = u.position`,
);

/** Call after FREE_ELEMENTS: strings of all elements are kept. */
const FREE_CONTENTS = statement(
  { threadId: "uuid" },
  (sql) => `
with ${referenced(sql)},
kept_strings as materialized (
  select unnest(strings) as string from threadloom.checkpoint_elements
  where thread_id = ${sql.threadId} and strings is not null
  union
  select unnest(strings) from threadloom.checkpoint_contents
  where thread_id = ${sql.threadId} and hash in (select content from kept_contents) and strings is not null
  union
  select unnest(strings) from threadloom.run_events where thread_id = ${sql.threadId} and strings is not null
  union
  select unnest(strings) from threadloom.runs where thread_id = ${sql.threadId} and strings is not null
),
freed as (
  delete from threadloom.checkpoint_contents k
  where k.thread_id = ${sql.threadId} and not exists (select from kept_contents c where c.content = k.hash)
    and not exists (select from kept_strings s where s.string = k.hash)
  returning k.thread_id, k.object_id
)
${NOTE_UNUSED("freed")}`,
);

export const freeUnreferenced = async (queryable: Queryable, threadId: string): Promise<void> => {
  await FREE_ELEMENTS.query(queryable, { threadId });
  await FREE_CONTENTS.query(queryable, { threadId });
};
