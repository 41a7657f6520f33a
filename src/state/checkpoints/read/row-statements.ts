import type { Encryption, Queryable } from "../../../platform/database/database.ts";
import { fragment, statement, type Fragment } from "../../../platform/database/statement.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { toJsonb } from "../../../platform/lib/jsonb.ts";
import type { PlaceOfRun } from "../types.ts";
import { openRecord, openWrites } from "../rows/encryption.ts";
import { RECORD } from "../rows/separators.ts";
import { parseTaskWrites, type TaskWrites } from "../rows/row-text.ts";
import { assertFilterOpen, inThread } from "./encrypted-filter.ts";

export interface CheckpointRow {
  thread_id: string;
  checkpoint_ns: string;
  seq: string;
  checkpoint_id: string;
  parent_id: string | null;
  run_id: string | null;
  metadata: string;
  /** See row-text.ts. */
  record: string;
  segments: number[];
  /** The names for the versions in the body. */
  shape: string;
  shape_hash: string;
  /** Writes stored after the record, ordered by task and time. */
  writes: TaskWrites[];
}

export type RawRow = Omit<CheckpointRow, "segments" | "writes"> & {
  segments: string | null;
  writes: string | null;
};

export const COLUMNS = `c.thread_id, c.checkpoint_ns, c.seq, c.checkpoint_id, c.parent_id, c.run_id,
  coalesce(c.metadata_text, (s.metadata || c.metadata)::text) as metadata, c.record,
  array_to_string(c.segments, ',') as segments, s.shape, s.hash as shape_hash`;

/** Index: the primary key; the table has few rows. */
export const SHAPE_OF_C = "join threadloom.checkpoint_shapes s on s.hash = c.shape";

export const WRITES = `string_agg(coalesce(w.task_name, w.task_id::text) || E'\\x1f' || w.writes, E'\\x1e'
    order by w.task_id, w.written_at)`;

const WRITES_OF_C = `
  select ${WRITES} as writes
  from threadloom.checkpoint_writes w
  where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns and w.checkpoint_id = c.checkpoint_id`;

export interface RowFilter {
  threadId: string | undefined;
  checkpointNs: string | undefined;
  checkpointId?: string;
  beforeCheckpointId?: string;
  /** The last row of the previous page, which may be deleted by now. */
  beforeSeq?: string | undefined;
  runId?: string;
  metadata?: JsonObject;
  limit: number;
}

const ROWS = { which: "fragment", limit: "bigint" } as const;
const rowsOf = (sql: Readonly<Record<keyof typeof ROWS, string>>): string => `
      select * from threadloom.checkpoints c where ${sql.which}
      order by c.seq desc limit ${sql.limit}`;
const withWrites = (rows: string, more = ""): string => `
    select ${COLUMNS}, w.writes${more}
    from (${rows}) as c
    ${SHAPE_OF_C}
    cross join lateral (${WRITES_OF_C}) as w
    order by c.seq desc`;

const WEIGHT_OF_C = `octet_length(c.record) + coalesce(octet_length(c.metadata_text), octet_length(c.metadata::text))`;

const READ_ROWS = statement(ROWS, (sql) => withWrites(rowsOf(sql)));
const READ_BOUNDED_ROWS = statement({ ...ROWS, bytesAtMost: "bigint" }, (sql) =>
  withWrites(
    `
      select * from (
        select c.*, count(*) over () as available,
          sum(${WEIGHT_OF_C} + coalesce((
            select sum(octet_length(w.writes)) from threadloom.checkpoint_writes w
            where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns
              and w.checkpoint_id = c.checkpoint_id
          ), 0)) over (order by c.seq desc rows between unbounded preceding and 1 preceding) as before
        from (${rowsOf(sql)}) as c
      ) as c where coalesce(before, 0) < ${sql.bytesAtMost}`,
    ", c.available",
  ),
);

/**
 * LangGraph also names a checkpoint of the graph above, or one that is not stored, whose id has a time. Indexes:
 * checkpoints_pkey.
 */
const seqOf = ({ threadId, checkpointNs }: RowFilter, id: string, parameter: (value: unknown) => string) => {
  const thread = threadId === undefined ? "true" : `b.thread_id = ${parameter(threadId)}::uuid`;
  const inNamespace =
    checkpointNs === undefined ? "true" : `b.checkpoint_ns = ${parameter(checkpointNs)}::text`;
  const given = `${parameter(id)}::uuid`;
  const named = `select max(b.seq) from threadloom.checkpoints b where ${thread} and b.checkpoint_id = ${given}`;
  return `coalesce((${named} and ${inNamespace}), (${named}), (select max(b.seq) + 1
    from threadloom.checkpoints b where ${thread} and ${inNamespace} and b.checkpoint_id < ${given}))`;
};

const matching = ({ encryption }: Queryable, filter: RowFilter): Fragment =>
  fragment((parameter) => {
    const conditions = [inThread(filter, parameter), "c.hidden is null"];
    const { checkpointId, beforeCheckpointId, beforeSeq, runId, metadata = {} } = filter;
    if (checkpointId !== undefined) conditions.push(`c.checkpoint_id = ${parameter(checkpointId)}::uuid`);
    if (beforeSeq !== undefined) conditions.push(`c.seq < ${parameter(beforeSeq)}::bigint`);
    else if (beforeCheckpointId !== undefined)
      conditions.push(`c.seq < ${seqOf(filter, beforeCheckpointId, parameter)}`);
    // With durability `exit`, the subgraphs of a step are stored before its checkpoint.
    if (beforeCheckpointId !== undefined)
      conditions.push(
        `c.metadata -> 'parents' ->> '' is distinct from ${parameter(beforeCheckpointId)}::uuid::text`,
      );
    if (runId !== undefined) conditions.push(`c.run_id = ${parameter(runId)}::uuid`);
    if (Object.keys(metadata).length > 0) {
      encryption.assertSearchable(metadata);
      const wanted = `${parameter(toJsonb(JSON.stringify(metadata)).jsonb)}::jsonb`;
      conditions.push(
        `(select s.metadata || c.metadata from threadloom.checkpoint_shapes s where s.hash = c.shape) @> ${wanted}`,
      );
    }
    return conditions.join(" and ");
  });

export const readRows = async (queryable: Queryable, filter: RowFilter): Promise<CheckpointRow[]> => {
  await assertFilterOpen(queryable, filter);
  const source = { which: matching(queryable, filter), limit: filter.limit };
  return (await READ_ROWS.query<RawRow>(queryable, source)).map(toRow);
};

/**
 * Reads up to `bytesAtMost` and one more row, since callers choose the size of rows. `isEnd`: no rows are left within
 * the filter's limit.
 */
export const readRowsOf = async (
  queryable: Queryable,
  filter: RowFilter,
  bytesAtMost: number,
): Promise<{ rows: CheckpointRow[]; isEnd: boolean }> => {
  await assertFilterOpen(queryable, filter);
  const { limit } = filter;
  const source = { which: matching(queryable, filter), limit, bytesAtMost };
  const raw = await READ_BOUNDED_ROWS.query<RawRow & { available: string }>(queryable, source);
  return {
    rows: raw.map(({ available: _, ...row }) => toRow(row)),
    isEnd: raw.length === Number(raw[0]?.available ?? 0),
  };
};

const READ_HEADS = statement(
  { threadIds: "uuid[]", bytesAtMost: "bigint" },
  (sql) => `
select ${COLUMNS}, null as writes, c.ordinal, c.final
from (
  select *, max(ordinal) over () as final,
    sum(${WEIGHT_OF_C}) over (order by ordinal rows between unbounded preceding and 1 preceding) as before
  from (
    select head.*, t.ordinal from unnest(${sql.threadIds}) with ordinality as t (id, ordinal)
    cross join lateral (
      select * from threadloom.checkpoints where thread_id = t.id and checkpoint_ns = '' order by seq desc limit 1
    ) as head
  ) as c
) as c
${SHAPE_OF_C}
where coalesce(c.before, 0) < ${sql.bytesAtMost}
order by c.ordinal`,
);

type HeadRow = RawRow & { ordinal: string; final: string };

/**
 * Rows in the order of the ids, without writes, up to `bytesAtMost` and one more. `done`: the number of finished ids.
 */
export const readHeadRows = async (
  queryable: Queryable,
  threadIds: readonly string[],
  bytesAtMost: number,
): Promise<{ rows: CheckpointRow[]; done: number }> => {
  if (threadIds.length === 0) return { rows: [], done: 0 };
  const raw = await READ_HEADS.query<HeadRow>(queryable, { threadIds, bytesAtMost });
  const last = raw.at(-1);
  const done = last === undefined || last.ordinal === last.final ? threadIds.length : Number(last.ordinal);
  return { rows: raw.map(({ ordinal: _, final: __, ...row }) => toRow(row)), done };
};

const READ_ANCESTORS = statement(
  { threadId: "uuid", checkpointNs: "text", checkpointId: "uuid", limit: "integer" },
  (sql) => `
with recursive chain (checkpoint_id, parent_id, depth) as (
  select checkpoint_id, parent_id, 0 from threadloom.checkpoints
  where thread_id = ${sql.threadId} and checkpoint_ns = ${sql.checkpointNs} and checkpoint_id = ${sql.checkpointId}
  union all
  select c.checkpoint_id, c.parent_id, chain.depth + 1
  from chain join threadloom.checkpoints c
    on c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.checkpointNs} and c.checkpoint_id = chain.parent_id
  where chain.depth < ${sql.limit}
)
select ${COLUMNS}, w.writes
from chain join threadloom.checkpoints c
  on c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.checkpointNs} and c.checkpoint_id = chain.checkpoint_id
${SHAPE_OF_C}
cross join lateral (${WRITES_OF_C}) as w
where chain.depth > 0
order by chain.depth`,
);

export const readAncestors = async (
  queryable: Queryable,
  threadId: string,
  checkpointNs: string,
  checkpointId: string,
  limit: number,
): Promise<CheckpointRow[]> =>
  (await READ_ANCESTORS.query<RawRow>(queryable, { threadId, checkpointNs, checkpointId, limit })).map(toRow);

/** No index by run: the row is near the end of the thread's range in checkpoints_by_seq. */
const LATEST_OF_RUN = statement(
  { threadId: "uuid", runId: "uuid" },
  (sql) => `select checkpoint_id from threadloom.checkpoints where thread_id = ${sql.threadId}
  and run_id = ${sql.runId} and checkpoint_ns = '' order by seq desc limit 1`,
);

export const findLatestOfRun = async (
  queryable: Queryable,
  threadId: string,
  runId: string,
): Promise<string | undefined> => {
  const rows = await LATEST_OF_RUN.query<{ checkpoint_id: string }>(queryable, { threadId, runId });
  return rows[0]?.checkpoint_id;
};

/** Reads one row if the run wrote the newest checkpoint, else as LATEST_OF_RUN. Index: checkpoints_by_seq. */
const PLACE_OF_RUN = statement(
  { threadId: "uuid", runId: "uuid" },
  (sql) => `select case when head.run_id = ${sql.runId} then 'newest'
    when exists (select from threadloom.checkpoints c
      where c.thread_id = ${sql.threadId} and c.checkpoint_ns = '' and c.run_id = ${sql.runId}) then 'overtaken'
    else 'none' end as place
  from (select c.run_id from threadloom.checkpoints c where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ''
    order by c.seq desc limit 1) as head`,
);

export const findPlaceOfRun = async (
  queryable: Queryable,
  threadId: string,
  runId: string,
): Promise<PlaceOfRun> => {
  const rows = await PLACE_OF_RUN.query<{ place: PlaceOfRun }>(queryable, { threadId, runId });
  return rows[0]?.place ?? "none";
};

/** `decryptRow` decrypts the row later, so that a damaged row fails alone. */
export const toRow = ({ segments, writes, ...raw }: RawRow): CheckpointRow => ({
  ...raw,
  segments: toNumbers(segments),
  writes: (writes?.split(RECORD) ?? []).map(parseTaskWrites),
});

export const decryptRow = (encryption: Encryption, row: CheckpointRow): CheckpointRow => ({
  ...row,
  metadata: encryption.decryptedJson("checkpoints", "metadata", row.metadata, row),
  record: openRecord(encryption, row.record, row),
  writes: row.writes.map(([taskId, lines]) => [taskId, openWrites(encryption, lines, row, taskId)]),
});

export const toNumbers = (text: string | null): number[] =>
  text === null ? [] : text.split(",").map(Number);
