/** The statements that checkpoints are read with. */

import type { Queryable } from "../../database/database.ts";
import type { JsonObject } from "../../lib/json.ts";
import { toJsonb } from "../../lib/jsonb.ts";
import type { Coverage, ElementRun } from "../lists/element-cache.ts";
import { LINE, RECORD } from "../rows/separators.ts";
import { ELEMENTS_PER_ROW_AT_MOST } from "../rows/new-rows.ts";
import { parseTaskWrites, type TaskWrites } from "../rows/row-text.ts";

/** A checkpoint's row with the writes of its tasks. */
export interface CheckpointRow {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  parent_id: string | null;
  run_id: string | null;
  metadata: string;
  /** See row-text.ts. */
  record: string;
  /** Of the record, as flat triples. */
  segments: number[];
  /** Whose the versions in the body are. */
  shape: string;
  shape_hash: string;
  /** What was written after the record, by task and run, in the order in which it was written. */
  writes: TaskWrites[];
}

export type RawRow = Omit<CheckpointRow, "segments" | "writes"> & {
  segments: string | null;
  writes: string | null;
};
type RawTuple = RawRow & { runs: string | null; kept: string | null };

const COLUMNS = `c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_id, c.run_id,
  coalesce(c.metadata_text, (s.metadata || c.metadata)::text) as metadata, c.record,
  array_to_string(c.segments, ',') as segments, s.shape, s.hash as shape_hash`;

/** The shape of `c`: one of a few rows, by their primary key. */
export const SHAPE_OF_C = "join threadloom.checkpoint_shapes s on s.hash = c.shape";

const WRITES = `string_agg(coalesce(w.task_name, w.task_id::text) || E'\\x1f' || w.writes, E'\\x1e'
    order by w.task_id, w.written_at)`;

const WRITES_OF_C = `
  select ${WRITES} as writes
  from threadloom.checkpoint_writes w
  where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns and w.checkpoint_id = c.checkpoint_id`;

/** A checkpoint with all that its values need beyond what the reader has: in one statement. */
const tupleStatement = (which: string): string => `
select ${COLUMNS}, t.writes, (
    select string_agg(e.list_id || ',' || e.position || E'\\n' || e.elements, E'\\x1e' order by e.list_id, e.position)
    from (
      select abs(g.triples[i]) as list_id,
        min(greatest(g.triples[i + 1], case when k.first <= g.triples[i + 1] then k.stop else 0 end)) as first,
        max(g.triples[i + 2]) as stop
      from (select c.segments || t.segments) as g (triples)
      cross join generate_series(1, cardinality(g.triples), 3) as i
      left join unnest($3::bigint[], $4::integer[], $5::integer[]) as k (list_id, first, stop)
        on k.list_id = abs(g.triples[i])
      group by 1
    ) as r
    cross join lateral (
      select * from threadloom.checkpoint_elements e
      where e.thread_id = c.thread_id and e.list_id = r.list_id and e.position < r.stop
        and e.position > r.first - ${ELEMENTS_PER_ROW_AT_MOST} and e.position + e.count > r.first
    ) as e
    where r.first < r.stop
  ) as runs, (
    select string_agg(k.hash || E'\\n' || k.content, E'\\x1e')
    from threadloom.checkpoint_contents k
    where k.thread_id = c.thread_id and k.hash = any(c.contents || t.contents) and k.hash <> all($6::uuid[])
  ) as kept
from (${which}) as c
${SHAPE_OF_C}
cross join lateral (
  select ${WRITES} as writes,
    string_to_array(string_agg(array_to_string(w.segments, ','), ','), ',')::bigint[] as segments,
    string_to_array(string_agg(array_to_string(w.contents, ','), ','), ',')::uuid[] as contents
  from threadloom.checkpoint_writes w
  where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns and w.checkpoint_id = c.checkpoint_id
) as t`;

const HEAD = `select * from threadloom.checkpoints where thread_id = $1::uuid and checkpoint_ns = $2::text
  order by checkpoint_id desc limit 1`;
const AT = `select * from threadloom.checkpoints
  where thread_id = $1::uuid and checkpoint_ns = $2::text and checkpoint_id = $7::uuid`;
const READ_HEAD = tupleStatement(HEAD);
const READ_AT = tupleStatement(AT);

/** What was read beside a row: to be added to what the reader has. */
export interface ReadParts {
  runs: ElementRun[];
  contents: Array<{ hash: string; text: string }>;
}

/** The newest checkpoint of a namespace, or the given one, with all parts that `coverage` doesn't hold. */
export const readTuple = async (
  queryable: Queryable,
  place: { threadId: string; checkpointNs: string; checkpointId: string | undefined },
  coverage: Coverage,
): Promise<(ReadParts & { row: CheckpointRow }) | undefined> => {
  const { threadId, checkpointNs, checkpointId } = place;
  const { lists, starts, ends, contents } = coverage;
  const values: unknown[] = [threadId, checkpointNs, lists, starts, ends, contents];
  const [raw] =
    checkpointId === undefined
      ? await queryable.query<RawTuple>(READ_HEAD, values)
      : await queryable.query<RawTuple>(READ_AT, [...values, checkpointId]);
  return raw === undefined ? undefined : { row: toRow(raw), ...toParts(raw) };
};

/**
 * What was read beside the rows. `before` is what the parts of the checkpoints in front of a part's own weigh: sizes are
 * known without fetching the texts themselves, and of these only what fits is fetched.
 */
const READ_PARTS = `
with part as materialized (
  select r.place, e.thread_id, e.list_id, e.position, null::uuid as hash, e.elements as text
  from unnest($1::uuid[], $2::bigint[], $3::integer[], $4::integer[], $5::integer[])
    as r (thread_id, list_id, first, stop, place)
  cross join lateral (
    select * from threadloom.checkpoint_elements e
    where e.thread_id = r.thread_id and e.list_id = r.list_id and e.position < r.stop
      and e.position > r.first - ${ELEMENTS_PER_ROW_AT_MOST} and e.position + e.count > r.first
  ) as e
  union all
  select w.place, k.thread_id, null, null, k.hash, k.content
  from unnest($6::uuid[], $7::uuid[], $8::integer[]) as w (thread_id, hash, place)
  join threadloom.checkpoint_contents k on k.thread_id = w.thread_id and k.hash = w.hash
), weighed as (
  select *, coalesce(sum(octet_length(text))
    over (order by place groups between unbounded preceding and 1 preceding), 0) as before
  from part
)
select thread_id,
  string_agg(list_id || ',' || position || E'\\n' || text, E'\\x1e' order by list_id, position)
    filter (where hash is null) as runs,
  string_agg(hash || E'\\n' || text, E'\\x1e') filter (where hash is not null) as kept,
  (select min(place) from weighed where before >= $9::bigint) as left_out
from weighed where before < $9::bigint
group by thread_id`;

/** Parts that a checkpoint refers to, and the place of that checkpoint among those that are read together. */
export interface WantedParts {
  ranges: Array<{ threadId: string; list: number; from: number; to: number; place: number }>;
  contents: Array<{ threadId: string; hash: string; place: number }>;
}

/**
 * Parts of any number of threads in one statement: in the order of the places, until those in front have `bytesAtMost`.
 * `leftOut` is the first place whose parts were not read.
 */
export const readParts = async (
  queryable: Queryable,
  { ranges, contents }: WantedParts,
  bytesAtMost: number,
): Promise<{ parts: Array<[threadId: string, parts: ReadParts]>; leftOut: number | undefined }> => {
  const rows = await queryable.query<{
    thread_id: string;
    runs: string | null;
    kept: string | null;
    left_out: number | null;
  }>(READ_PARTS, [
    ranges.map(({ threadId }) => threadId),
    ranges.map(({ list }) => list),
    ranges.map(({ from }) => from),
    ranges.map(({ to }) => to),
    ranges.map(({ place }) => place),
    contents.map(({ threadId }) => threadId),
    contents.map(({ hash }) => hash),
    contents.map(({ place }) => place),
    bytesAtMost,
  ]);
  return {
    parts: rows.map((row) => [row.thread_id, toParts(row)]),
    leftOut: rows[0]?.left_out ?? undefined,
  };
};

export interface RowFilter {
  threadId: string | undefined;
  checkpointNs: string | undefined;
  checkpointId?: string;
  beforeCheckpointId?: string;
  runId?: string;
  metadata?: JsonObject;
  limit: number;
}

/** The statement of a page of rows, newest first; `which` picks from them, which are `c`, what is read. */
const rowsStatement = (
  filter: RowFilter,
  more: string,
  which: (rows: string, bind: (value: unknown, type: string) => string) => string,
): { text: string; values: unknown[] } => {
  const values: unknown[] = [];
  const bind = (value: unknown, type: string): string => `$${values.push(value)}::${type}`;
  const conditions = ["true"];
  if (filter.threadId !== undefined) conditions.push(`c.thread_id = ${bind(filter.threadId, "uuid")}`);
  if (filter.checkpointNs !== undefined)
    conditions.push(`c.checkpoint_ns = ${bind(filter.checkpointNs, "text")}`);
  if (filter.checkpointId !== undefined)
    conditions.push(`c.checkpoint_id = ${bind(filter.checkpointId, "uuid")}`);
  if (filter.beforeCheckpointId !== undefined) {
    conditions.push(`c.checkpoint_id < ${bind(filter.beforeCheckpointId, "uuid")}`);
  }
  if (filter.runId !== undefined) conditions.push(`c.run_id = ${bind(filter.runId, "uuid")}`);
  if (filter.metadata !== undefined && Object.keys(filter.metadata).length > 0) {
    const wanted = bind(toJsonb(JSON.stringify(filter.metadata)).jsonb, "jsonb");
    conditions.push(
      `(select s.metadata || c.metadata from threadloom.checkpoint_shapes s where s.hash = c.shape) @> ${wanted}`,
    );
  }
  const rows = `
      select * from threadloom.checkpoints c where ${conditions.join(" and ")}
      order by c.checkpoint_id desc limit ${bind(filter.limit, "bigint")}`;
  const text = `
    select ${COLUMNS}, w.writes${more}
    from (${which(rows, bind)}) as c
    ${SHAPE_OF_C}
    cross join lateral (${WRITES_OF_C}) as w
    order by c.checkpoint_id desc`;
  return { text, values };
};

/** Rows with their writes, newest first. */
export const readRows = async (queryable: Queryable, filter: RowFilter): Promise<CheckpointRow[]> => {
  const { text, values } = rowsStatement(filter, "", (rows) => rows);
  return (await queryable.query<RawRow>(text, values)).map(toRow);
};

const WEIGHT_OF_C = `octet_length(c.record) + coalesce(octet_length(c.metadata_text), octet_length(c.metadata::text))`;

/**
 * As `readRows`, but no more than have `bytesAtMost`, and one more: rows are as large as their callers like, too.
 * `isEnd`: there are no others within the filter's limit.
 */
export const readRowsOf = async (
  queryable: Queryable,
  filter: RowFilter,
  bytesAtMost: number,
): Promise<{ rows: CheckpointRow[]; isEnd: boolean }> => {
  const { text, values } = rowsStatement(
    filter,
    ", c.available",
    (rows, bind) => `
      select * from (
        select c.*, count(*) over () as available,
          sum(${WEIGHT_OF_C} + coalesce((
            select sum(octet_length(w.writes)) from threadloom.checkpoint_writes w
            where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns
              and w.checkpoint_id = c.checkpoint_id
          ), 0)) over (order by c.checkpoint_id desc rows between unbounded preceding and 1 preceding) as before
        from (${rows}) as c
      ) as c where coalesce(before, 0) < ${bind(bytesAtMost, "bigint")}`,
  );
  const raw = await queryable.query<RawRow & { available: string }>(text, values);
  return {
    rows: raw.map(({ available: _, ...row }) => toRow(row)),
    isEnd: raw.length === Number(raw[0]?.available ?? 0),
  };
};

const READ_HEADS = `
select ${COLUMNS}, null as writes, c.place, c.final
from (
  select *, max(place) over () as final,
    sum(${WEIGHT_OF_C}) over (order by place rows between unbounded preceding and 1 preceding) as before
  from (
    select head.*, t.place from unnest($1::uuid[]) with ordinality as t (id, place)
    cross join lateral (
      select * from threadloom.checkpoints where thread_id = t.id and checkpoint_ns = '' order by checkpoint_id desc limit 1
    ) as head
  ) as c
) as c
${SHAPE_OF_C}
where coalesce(c.before, 0) < $2::bigint
order by c.place`;

/**
 * The newest row of the root graph of each thread, without its writes, in the order of the ids, as many as have
 * `bytesAtMost`, and one more. `done`: for how many of the ids that is all.
 */
export const readHeadRows = async (
  queryable: Queryable,
  threadIds: readonly string[],
  bytesAtMost: number,
): Promise<{ rows: CheckpointRow[]; done: number }> => {
  const raw = await queryable.query<RawRow & { place: string; final: string }>(READ_HEADS, [
    threadIds,
    bytesAtMost,
  ]);
  const last = raw.at(-1);
  const isEnd = last === undefined || last.place === last.final;
  return {
    rows: raw.map(({ place: _, final: __, ...row }) => toRow(row)),
    done: isEnd ? threadIds.length : Number(last.place),
  };
};

const READ_ANCESTORS = `
with recursive chain (checkpoint_id, parent_id, depth) as (
  select checkpoint_id, parent_id, 0 from threadloom.checkpoints
  where thread_id = $1::uuid and checkpoint_ns = $2::text and checkpoint_id = $3::uuid
  union all
  select c.checkpoint_id, c.parent_id, chain.depth + 1
  from chain join threadloom.checkpoints c
    on c.thread_id = $1::uuid and c.checkpoint_ns = $2::text and c.checkpoint_id = chain.parent_id
  where chain.depth < $4::integer
)
select ${COLUMNS}, w.writes
from chain join threadloom.checkpoints c
  on c.thread_id = $1::uuid and c.checkpoint_ns = $2::text and c.checkpoint_id = chain.checkpoint_id
${SHAPE_OF_C}
cross join lateral (${WRITES_OF_C}) as w
where chain.depth > 0
order by chain.depth`;

/** The nearest ancestors of a checkpoint, nearest first. */
export const readAncestors = async (
  queryable: Queryable,
  threadId: string,
  checkpointNs: string,
  checkpointId: string,
  limit: number,
): Promise<CheckpointRow[]> =>
  (await queryable.query<RawRow>(READ_ANCESTORS, [threadId, checkpointNs, checkpointId, limit])).map(toRow);

/** No index by run: a later attempt asks once, and what it looks for stands at the end of the primary key's range. */
const LATEST_OF_RUN = `select checkpoint_id from threadloom.checkpoints
  where thread_id = $1::uuid and run_id = $2::uuid and checkpoint_ns = '' order by checkpoint_id desc limit 1`;

export const findLatestOfRun = async (
  queryable: Queryable,
  threadId: string,
  runId: string,
): Promise<string | undefined> => {
  const rows = await queryable.query<{ checkpoint_id: string }>(LATEST_OF_RUN, [threadId, runId]);
  return rows[0]?.checkpoint_id;
};

const toRow = ({ segments, writes, ...raw }: RawRow): CheckpointRow => ({
  ...raw,
  segments: toNumbers(segments),
  writes: (writes?.split(RECORD) ?? []).map(parseTaskWrites),
});

/** Of a bigint[] that `array_to_string` has put together with commas. */
export const toNumbers = (text: string | null): number[] =>
  text === null ? [] : text.split(",").map(Number);

const toParts = ({ runs, kept }: { runs: string | null; kept: string | null }): ReadParts => ({
  runs: (runs?.split(RECORD) ?? []).map((text) => {
    const [head = "", ...texts] = text.split(LINE);
    const [list, position] = head.split(",");
    // A row without elements holds the place of pruned ones.
    return { list: Number(list), position: Number(position), texts: texts[0] === "" ? [] : texts };
  }),
  contents: (kept?.split(RECORD) ?? []).map((text) => {
    const end = text.indexOf(LINE);
    return { hash: text.slice(0, end), text: text.slice(end + 1) };
  }),
});
