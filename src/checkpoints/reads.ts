/** The statements that checkpoints are read with. */

import type { Queryable } from "../database/database.ts";
import type { JsonObject } from "../lib/json.ts";
import { toJsonb } from "../lib/jsonb.ts";
import type { Coverage, ElementRun } from "./element-cache.ts";
import { LINE, RECORD, RUN_ELEMENTS_AT_MOST } from "./repository.ts";
import { parseTaskWrites, type TaskWrites } from "./row-text.ts";

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
export const SHAPE_OF_C = "join checkpoint_shapes s on s.hash = c.shape";

const WRITES = `string_agg(coalesce(w.task_name, w.task_id::text) || E'\\x1f' || w.writes, E'\\x1e'
    order by w.task_id, w.written_at)`;

const WRITES_OF_C = `
  select ${WRITES} as writes
  from checkpoint_writes w
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
      select * from checkpoint_elements e
      where e.thread_id = c.thread_id and e.list_id = r.list_id and e.position < r.stop
        and e.position > r.first - ${RUN_ELEMENTS_AT_MOST} and e.position + e.count > r.first
    ) as e
    where r.first < r.stop
  ) as runs, (
    select string_agg(k.hash || E'\\n' || k.content, E'\\x1e')
    from checkpoint_contents k
    where k.thread_id = c.thread_id and k.hash = any(c.contents || t.contents) and k.hash <> all($6::uuid[])
  ) as kept
from (${which}) as c
${SHAPE_OF_C}
cross join lateral (
  select ${WRITES} as writes,
    string_to_array(string_agg(array_to_string(w.segments, ','), ','), ',')::bigint[] as segments,
    string_to_array(string_agg(array_to_string(w.contents, ','), ','), ',')::uuid[] as contents
  from checkpoint_writes w
  where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns and w.checkpoint_id = c.checkpoint_id
) as t`;

const HEAD = `select * from checkpoints where thread_id = $1::uuid and checkpoint_ns = $2::text
  order by checkpoint_id desc limit 1`;
const AT = `select * from checkpoints
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

const READ_PARTS = `
select e.thread_id,
  string_agg(e.list_id || ',' || e.position || E'\\n' || e.elements, E'\\x1e' order by e.list_id, e.position) as runs,
  null as kept
from unnest($1::uuid[], $2::bigint[], $3::integer[], $4::integer[]) as r (thread_id, list_id, first, stop)
cross join lateral (
  select * from checkpoint_elements e
  where e.thread_id = r.thread_id and e.list_id = r.list_id and e.position < r.stop
    and e.position > r.first - ${RUN_ELEMENTS_AT_MOST} and e.position + e.count > r.first
) as e
group by e.thread_id
union all
select k.thread_id, null, string_agg(k.hash || E'\\n' || k.content, E'\\x1e')
from unnest($5::uuid[], $6::uuid[]) as w (thread_id, hash)
join checkpoint_contents k on k.thread_id = w.thread_id and k.hash = w.hash
group by k.thread_id`;

/** The elements [start, end) of lists, and contents, of any number of threads in one statement. */
export const readParts = async (
  queryable: Queryable,
  wanted: ReadonlyMap<string, Coverage>,
): Promise<Array<[threadId: string, parts: ReadParts]>> => {
  const ranges = [...wanted].flatMap(([threadId, { lists, starts, ends }]) =>
    lists.map((list, index) => ({ threadId, list, start: starts[index], end: ends[index] })),
  );
  const contents = [...wanted].flatMap(([threadId, { contents: hashes }]) =>
    hashes.map((hash) => ({ threadId, hash })),
  );
  const rows = await queryable.query<{ thread_id: string; runs: string | null; kept: string | null }>(
    READ_PARTS,
    [
      ranges.map(({ threadId }) => threadId),
      ranges.map(({ list }) => list),
      ranges.map(({ start }) => start),
      ranges.map(({ end }) => end),
      contents.map(({ threadId }) => threadId),
      contents.map(({ hash }) => hash),
    ],
  );
  return rows.map((row) => [row.thread_id, toParts(row)]);
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

/** Rows with their writes, newest first. */
export const readRows = async (queryable: Queryable, filter: RowFilter): Promise<CheckpointRow[]> => {
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
      `(select s.metadata || c.metadata from checkpoint_shapes s where s.hash = c.shape) @> ${wanted}`,
    );
  }
  const text = `
    select ${COLUMNS}, w.writes
    from (
      select * from checkpoints c where ${conditions.join(" and ")}
      order by c.checkpoint_id desc limit ${bind(filter.limit, "bigint")}
    ) as c
    ${SHAPE_OF_C}
    cross join lateral (${WRITES_OF_C}) as w
    order by c.checkpoint_id desc`;
  return (await queryable.query<RawRow>(text, values)).map(toRow);
};

const READ_HEADS = `
select ${COLUMNS}, w.writes
from unnest($1::uuid[]) as t (id)
cross join lateral (
  select * from checkpoints where thread_id = t.id and checkpoint_ns = '' order by checkpoint_id desc limit 1
) as c
${SHAPE_OF_C}
cross join lateral (${WRITES_OF_C}) as w`;

/** The newest row of the root graph of each thread. */
export const readHeadRows = async (
  queryable: Queryable,
  threadIds: readonly string[],
): Promise<CheckpointRow[]> => (await queryable.query<RawRow>(READ_HEADS, [threadIds])).map(toRow);

const READ_ANCESTORS = `
with recursive chain (checkpoint_id, parent_id, depth) as (
  select checkpoint_id, parent_id, 0 from checkpoints
  where thread_id = $1::uuid and checkpoint_ns = $2::text and checkpoint_id = $3::uuid
  union all
  select c.checkpoint_id, c.parent_id, chain.depth + 1
  from chain join checkpoints c
    on c.thread_id = $1::uuid and c.checkpoint_ns = $2::text and c.checkpoint_id = chain.parent_id
  where chain.depth < $4::integer
)
select ${COLUMNS}, w.writes
from chain join checkpoints c
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
const LATEST_OF_RUN = `select checkpoint_id from checkpoints
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
