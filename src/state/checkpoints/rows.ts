import type { CheckpointListOptions } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Encryption, Queryable } from "../../platform/database/database.ts";
import { fragment, statement, type Fragment } from "../../platform/database/statement.ts";
import { notSearchable } from "../../platform/domain/errors.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { toJsonb } from "../../platform/lib/jsonb.ts";
import { configurable } from "./config.ts";
import { METADATA_OF_C, NAMES_OF_C } from "./names.ts";
import { keyOfWrites, openWrites, parseWrites, type TaskWrite } from "./record.ts";
import { threadKey } from "./thread-key.ts";
import type { PlaceOfRun } from "./types.ts";

interface StoredRow {
  thread_id: string;
  checkpoint_ns: string;
  seq: string;
  checkpoint_id: string;
  parent_id: string | null;
  run_id: string | null;
  metadata: string;
  /** See names.ts. */
  names: string;
  /** See record.ts. */
  record: string;
  /** Null: none is known. */
  delta_channels: string[] | null;
  /** Those of the checkpoint's own statement. */
  own_writes: string | null;
  /** Later ones: `task UNIT writes` of each row of `checkpoint_writes`. */
  writes: string | null;
}

export interface CheckpointRow extends Omit<StoredRow, "own_writes" | "writes"> {
  writes: TaskWrite[];
}

/** Encrypted, so that a damaged row fails alone. */
export type ClosedRow = StoredRow;

export const openRow = (
  encryption: Encryption,
  { own_writes: own, writes, ...row }: ClosedRow,
): CheckpointRow => {
  const versions = own === null ? [] : openWrites(encryption, "checkpoints", own, keyOfWrites(row));
  for (const [task, text] of laterWrites(writes))
    versions.push(...openWrites(encryption, "checkpoint_writes", text, { ...row, task_id: task }));
  return {
    ...row,
    metadata: encryption.decryptedJson("checkpoints", "metadata", row.metadata, row),
    record: encryption.decryptedValue("checkpoints", "record", row.record, row),
    writes: parseWrites(versions),
  };
};

const laterWrites = (writes: string | null): Array<[task: string, text: string]> =>
  (writes?.split("\u001d") ?? []).map((text) => {
    const end = text.indexOf("\u001f");
    return [text.slice(0, end), text.slice(end + 1)];
  });

/** The texts of all writes beside a checkpoint, as stored. */
export const storedWritesOf = ({ own_writes: own, writes }: ClosedRow): string[] => [
  ...(own === null ? [] : [own]),
  ...laterWrites(writes).map(([, text]) => text),
];

const COLUMNS = `c.thread_id, c.checkpoint_ns, c.seq, c.checkpoint_id, c.parent_id, c.run_id,
  coalesce(c.metadata_text, ${METADATA_OF_C}::text) as metadata, n.names, c.record, c.delta_channels`;
const COLUMNS_WITHOUT_WRITES = `${COLUMNS}, null as own_writes, null as writes`;
const COLUMNS_WITH_WRITES = `${COLUMNS}, c.writes as own_writes, w.writes`;

const WRITES_OF_C = `
  select string_agg(w.task_id || E'\\x1f' || w.writes, E'\\x1d' order by w.task_id, w.written_at) as writes
  from threadloom.checkpoint_writes w
  where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns and w.checkpoint_id = c.checkpoint_id`;

const withWrites = (rows: string, order = ""): string => `
select ${COLUMNS_WITH_WRITES} from (${rows}) as c ${NAMES_OF_C} cross join lateral (${WRITES_OF_C}) as w ${order}`;

/** Index: checkpoints_by_seq. */
const READ_HEAD = statement({ threadId: "uuid", checkpointNs: "text" }, (sql) =>
  withWrites(`select * from threadloom.checkpoints
  where thread_id = ${sql.threadId} and checkpoint_ns = ${sql.checkpointNs} order by seq desc limit 1`),
);
/** Index: checkpoints_pkey. */
const READ_AT = statement({ threadId: "uuid", checkpointNs: "text", checkpointId: "uuid" }, (sql) =>
  withWrites(`select * from threadloom.checkpoints where thread_id = ${sql.threadId}
  and checkpoint_ns = ${sql.checkpointNs} and checkpoint_id = ${sql.checkpointId} and hidden is null`),
);

export interface CheckpointAddress {
  /** See thread-key.ts. */
  threadId: string;
  checkpointNs: string;
  /** Undefined: the newest. */
  checkpointId: string | undefined;
}

export const readRow = async (
  queryable: Queryable,
  address: CheckpointAddress,
): Promise<ClosedRow | undefined> => {
  const { checkpointId } = address;
  const [row] =
    checkpointId === undefined
      ? await READ_HEAD.query<ClosedRow>(queryable, address)
      : await READ_AT.query<ClosedRow>(queryable, { ...address, checkpointId });
  return row;
};

/** All of one graph, without the writes of tasks. Index: checkpoints_pkey. */
const READ_RECORDS = statement(
  { threadId: "uuid", checkpointNs: "text" },
  (sql) => `select ${COLUMNS_WITHOUT_WRITES} from threadloom.checkpoints c ${NAMES_OF_C}
  where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.checkpointNs}`,
);
export const readRecords = (
  queryable: Queryable,
  threadId: string,
  checkpointNs: string,
): Promise<ClosedRow[]> => READ_RECORDS.query<ClosedRow>(queryable, { threadId, checkpointNs });

/** Index: checkpoints_pkey. */
const READ_THREAD = statement({ threadId: "uuid" }, (sql) =>
  withWrites(`select * from threadloom.checkpoints where thread_id = ${sql.threadId}`),
);
export const readThread = (queryable: Queryable, threadId: string): Promise<ClosedRow[]> =>
  READ_THREAD.query<ClosedRow>(queryable, { threadId });

export interface RowFilter {
  /** Undefined: all threads, all namespaces. */
  threadId: string | undefined;
  checkpointNs: string | undefined;
  checkpointId?: string | undefined;
  beforeCheckpointId?: string | undefined;
  /** The last row of the previous page, which may be deleted by now. */
  beforeSeq?: string | undefined;
  runId?: string | undefined;
  metadata?: JsonObject;
  limit: number;
}

const inThread = (
  { threadId, checkpointNs }: Pick<RowFilter, "threadId" | "checkpointNs">,
  parameter: (value: unknown) => string,
): string =>
  [
    threadId === undefined ? "true" : `c.thread_id = ${parameter(threadId)}::uuid`,
    checkpointNs === undefined ? "true" : `c.checkpoint_ns = ${parameter(checkpointNs)}::text`,
  ].join(" and ");

/**
 * The value of a metadata key from a config is encrypted. The next run may store it unencrypted. Index: checkpoints_pkey.
 */
const FIND_ENCRYPTED_KEY = statement(
  { keys: "text[]", which: "fragment" },
  (sql) => `select wanted.key from unnest(${sql.keys}) as wanted (key)
  where exists (select from threadloom.checkpoints c where ${sql.which} and c.metadata ->> wanted.key like 'enc1:%')
  limit 1`,
);

/** Throws `invalid`, because the filter would skip checkpoints with an encrypted value. */
const assertFilterOpen = async (queryable: Queryable, filter: RowFilter): Promise<void> => {
  const keys = Object.keys(filter.metadata ?? {});
  if (!queryable.encryption.isOn || keys.length === 0) return;
  const which = fragment((parameter) => inThread(filter, parameter));
  const [found] = await FIND_ENCRYPTED_KEY.query<{ key: string }>(queryable, { keys, which });
  if (found !== undefined) throw notSearchable(found.key);
};

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
        `(select ${METADATA_OF_C} from threadloom.checkpoint_names n where n.hash = c.names) @> ${wanted}`,
      );
    }
    return conditions.join(" and ");
  });

/** A row may be as large as callers choose. */
const WEIGHT_OF_C = `octet_length(c.record) + coalesce(octet_length(c.writes), 0)
  + coalesce(octet_length(c.metadata_text), octet_length(c.metadata::text))`;
const PAGE_BYTES = 1024 * 1024;

const READ_ROWS = statement({ which: "fragment", limit: "bigint", bytesAtMost: "bigint" }, (sql) =>
  withWrites(
    `select * from (
      select c.*, sum(${WEIGHT_OF_C} + coalesce((
          select sum(octet_length(w.writes)) from threadloom.checkpoint_writes w
          where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns and w.checkpoint_id = c.checkpoint_id
        ), 0)) over (order by c.seq desc rows between unbounded preceding and 1 preceding) as before
      from (
        select * from threadloom.checkpoints c where ${sql.which} order by c.seq desc limit ${sql.limit}
      ) as c
    ) as c where coalesce(before, 0) < ${sql.bytesAtMost}`,
    "order by c.seq desc",
  ),
);

/** In UTF-8. */
const BYTES_OF_CHARACTER_AT_MOST = 3;

/** Newest first. Fewer rows than `limit` if they are large. `isEnd`: no row is left. */
export const readRows = async (
  queryable: Queryable,
  filter: RowFilter,
): Promise<{ rows: ClosedRow[]; isEnd: boolean }> => {
  await assertFilterOpen(queryable, filter);
  const { limit } = filter;
  const source = { which: matching(queryable, filter), limit, bytesAtMost: PAGE_BYTES };
  const rows = await READ_ROWS.query<ClosedRow>(queryable, source);
  let characters = 0;
  for (const { record, metadata, own_writes: own, writes } of rows)
    characters += record.length + metadata.length + (own?.length ?? 0) + (writes?.length ?? 0);
  const isWhole = characters * BYTES_OF_CHARACTER_AT_MOST < PAGE_BYTES;
  return { rows, isEnd: rows.length === 0 || (isWhole && rows.length < limit) };
};

const READ_HEADS = statement(
  { threadIds: "uuid[]", bytesAtMost: "bigint" },
  (sql) => `
select ${COLUMNS_WITHOUT_WRITES}, c.ordinal, c.final
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
${NAMES_OF_C}
where coalesce(c.before, 0) < ${sql.bytesAtMost}
order by c.ordinal`,
);

type HeadRow = ClosedRow & { ordinal: string; final: string };

/** Rows in the order of the ids, without writes of tasks, as far as they fit. `done`: the number of finished ids. */
export const readHeadRows = async (
  queryable: Queryable,
  threadIds: readonly string[],
): Promise<{ rows: ClosedRow[]; done: number }> => {
  if (threadIds.length === 0) return { rows: [], done: 0 };
  const rows = await READ_HEADS.query<HeadRow>(queryable, { threadIds, bytesAtMost: PAGE_BYTES });
  const last = rows.at(-1);
  const done = last === undefined || last.ordinal === last.final ? threadIds.length : Number(last.ordinal);
  return { rows: rows.map(({ ordinal: _, final: __, ...row }) => row), done };
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
select ${COLUMNS_WITH_WRITES}
from chain join threadloom.checkpoints c
  on c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.checkpointNs} and c.checkpoint_id = chain.checkpoint_id
${NAMES_OF_C}
cross join lateral (${WRITES_OF_C}) as w
where chain.depth > 0
order by chain.depth`,
);

/** Nearest first. */
export const readAncestors = (
  queryable: Queryable,
  threadId: string,
  checkpointNs: string,
  checkpointId: string,
  limit: number,
): Promise<ClosedRow[]> =>
  READ_ANCESTORS.query<ClosedRow>(queryable, { threadId, checkpointNs, checkpointId, limit });

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
): Promise<string | undefined> =>
  (await LATEST_OF_RUN.query<{ checkpoint_id: string }>(queryable, { threadId, runId }))[0]?.checkpoint_id;

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
): Promise<PlaceOfRun> =>
  (await PLACE_OF_RUN.query<{ place: PlaceOfRun }>(queryable, { threadId, runId }))[0]?.place ?? "none";

/** Undefined if no checkpoint can match: ids that are no UUIDs, names that PostgreSQL can't hold. */
export const rowFilterOf = (
  config: RunnableConfig,
  options: CheckpointListOptions,
): { threadId: string | undefined; rows: Omit<RowFilter, "limit"> } | undefined => {
  const { thread_id, checkpoint_ns, checkpoint_id } = configurable(config);
  const threadId = typeof thread_id === "string" ? thread_id : undefined;
  const checkpointNs = typeof checkpoint_ns === "string" ? checkpoint_ns : undefined;
  const checkpointId = namedId(checkpoint_id);
  const beforeCheckpointId = namedId(options.before?.configurable?.checkpoint_id);
  const { run_id: runId, ...metadata } = (options.filter ?? {}) as JsonObject;
  for (const id of [checkpointId, beforeCheckpointId]) if (id !== undefined && !isUuid(id)) return undefined;
  if (checkpointNs?.includes("\u0000")) return undefined;
  if (runId !== undefined && !(typeof runId === "string" && isUuid(runId))) return undefined;
  const key = threadId === undefined ? undefined : threadKey(threadId);
  return {
    threadId,
    rows: { threadId: key, checkpointNs, checkpointId, beforeCheckpointId, runId, metadata },
  };
};

const namedId = (id: unknown): string | undefined => (typeof id === "string" && id !== "" ? id : undefined);
