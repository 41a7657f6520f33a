import type { Encryption, Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { Coverage, StoredElements } from "../lists/element-cache.ts";
import { ELEMENTS_PER_ROW_AT_MOST } from "../rows/new-rows.ts";
import { hasLargeStrings, putBackLargeStrings } from "../../values/large-strings.ts";
import { LINE, RECORD } from "../rows/separators.ts";
import { readContents, type StoredContent } from "./contents.ts";
import { readLargeStrings } from "./large-strings.ts";
import { COLUMNS, SHAPE_OF_C, toRow, WRITES, type CheckpointRow, type RawRow } from "./row-statements.ts";

type RawCheckpoint = RawRow & { elements: string | null; contents: string | null };

const ELEMENTS_OF_E = `string_agg(e.list_id || ',' || e.position || E'\\n' || e.elements, E'\\x1e'
    order by e.list_id, e.position)`;
/** With the object that has the content, if there is one. */
const HEAD_OF_K = "k.hash || coalesce(',' || k.object_id, '')";
const CONTENTS_OF_K = `string_agg(${HEAD_OF_K} || E'\\n' || k.content, E'\\x1e')`;

const HEAD_PARAMETERS = {
  threadId: "uuid",
  checkpointNs: "text",
  lists: "bigint[]",
  starts: "integer[]",
  ends: "integer[]",
  hashes: "uuid[]",
} as const;
const AT_PARAMETERS = { ...HEAD_PARAMETERS, checkpointId: "uuid" } as const;
type Sql = Readonly<Record<keyof typeof HEAD_PARAMETERS, string>>;

/** With large strings. */
const BYTES_OF_E = "octet_length(e.elements) + coalesce(e.string_bytes, 0)";
const BYTES_OF_K = "coalesce(k.object_bytes, octet_length(k.content)) + coalesce(k.string_bytes, 0)";

const checkpointText = (sql: Sql, which: string): string => `
select ${COLUMNS}, t.writes, (
    select ${ELEMENTS_OF_E}
    from (
      select abs(g.triples[i]) as list_id,
        min(greatest(g.triples[i + 1], case when k.first <= g.triples[i + 1] then k.stop else 0 end)) as first,
        max(g.triples[i + 2]) as stop
      from (select c.segments || t.segments) as g (triples)
      cross join generate_series(1, cardinality(g.triples), 3) as i
      left join unnest(${sql.lists}, ${sql.starts}, ${sql.ends}) as k (list_id, first, stop)
        on k.list_id = abs(g.triples[i])
      group by 1
    ) as r
    cross join lateral (
      select * from threadloom.checkpoint_elements e
      where e.thread_id = c.thread_id and e.list_id = r.list_id and e.position < r.stop
        and e.position > r.first - ${ELEMENTS_PER_ROW_AT_MOST} and e.position + e.count > r.first
    ) as e
    where r.first < r.stop
  ) as elements, (
    select ${CONTENTS_OF_K}
    from threadloom.checkpoint_contents k
    where k.thread_id = c.thread_id and k.hash = any(c.contents || t.contents) and k.hash <> all(${sql.hashes})
  ) as contents
from (${which}) as c
${SHAPE_OF_C}
cross join lateral (
  select ${WRITES} as writes,
    string_to_array(string_agg(array_to_string(w.segments, ','), ','), ',')::bigint[] as segments,
    string_to_array(string_agg(array_to_string(w.contents, ','), ','), ',')::uuid[] as contents
  from threadloom.checkpoint_writes w
  where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns and w.checkpoint_id = c.checkpoint_id
) as t`;

const READ_HEAD = statement(HEAD_PARAMETERS, (sql) =>
  checkpointText(
    sql,
    `select * from threadloom.checkpoints
  where thread_id = ${sql.threadId} and checkpoint_ns = ${sql.checkpointNs} order by seq desc limit 1`,
  ),
);
const READ_AT = statement(AT_PARAMETERS, (sql) =>
  checkpointText(
    sql,
    `select * from threadloom.checkpoints where thread_id = ${sql.threadId}
  and checkpoint_ns = ${sql.checkpointNs} and checkpoint_id = ${sql.checkpointId}
  and hidden is null`,
  ),
);

export interface ReadParts {
  elements: StoredElements[];
  contents: Array<{ hash: string; text: string }>;
}

interface ReadCheckpoint extends ReadParts {
  row: CheckpointRow;
}

export interface CheckpointAddress {
  /** See thread-key.ts. */
  threadId: string;
  checkpointNs: string;
  /** Undefined: the newest. */
  checkpointId: string | undefined;
}

/** Leaves out parts in `coverage`. */
export const readCheckpoint = async (
  queryable: Queryable,
  address: CheckpointAddress,
  coverage: Coverage,
): Promise<ReadCheckpoint | undefined> => {
  const { checkpointId } = address;
  const { lists, starts, ends, contents: hashes } = coverage;
  const known = { ...address, lists, starts, ends, hashes };
  const [raw] =
    checkpointId === undefined
      ? await READ_HEAD.query<RawCheckpoint>(queryable, known)
      : await READ_AT.query<RawCheckpoint>(queryable, known);
  if (raw === undefined) return undefined;
  const { elements, contents, ...row } = raw;
  const parts = toParts({ elements, contents }, queryable.encryption);
  return { row: toRow(row), ...(await wholeParts(queryable, address.threadId, parts)) };
};

/** `before` is the weight of earlier checkpoints' parts. PostgreSQL fetches only texts that fit. */
const READ_PARTS = statement(
  {
    rangeThreads: "uuid[]",
    lists: "bigint[]",
    froms: "integer[]",
    tos: "integer[]",
    rangeOrdinals: "integer[]",
    contentThreads: "uuid[]",
    hashes: "uuid[]",
    contentOrdinals: "integer[]",
    bytesAtMost: "bigint",
  },
  (sql) => `
with part as materialized (
  select r.ordinal, e.thread_id, e.list_id, e.position, null as head, e.elements as text, ${BYTES_OF_E} as bytes
  from unnest(${sql.rangeThreads}, ${sql.lists}, ${sql.froms}, ${sql.tos}, ${sql.rangeOrdinals})
    as r (thread_id, list_id, first, stop, ordinal)
  cross join lateral (
    select * from threadloom.checkpoint_elements e
    where e.thread_id = r.thread_id and e.list_id = r.list_id and e.position < r.stop
      and e.position > r.first - ${ELEMENTS_PER_ROW_AT_MOST} and e.position + e.count > r.first
  ) as e
  union all
  select w.ordinal, k.thread_id, null, null, ${HEAD_OF_K}, k.content, ${BYTES_OF_K}
  from unnest(${sql.contentThreads}, ${sql.hashes}, ${sql.contentOrdinals}) as w (thread_id, hash, ordinal)
  join threadloom.checkpoint_contents k on k.thread_id = w.thread_id and k.hash = w.hash
), weighed as (
  select *, coalesce(sum(bytes)
    over (order by ordinal groups between unbounded preceding and 1 preceding), 0) as before
  from part
)
select thread_id,
  string_agg(list_id || ',' || position || E'\\n' || text, E'\\x1e' order by list_id, position)
    filter (where head is null) as elements,
  string_agg(head || E'\\n' || text, E'\\x1e') filter (where head is not null) as contents,
  (select min(ordinal) from weighed where before >= ${sql.bytesAtMost}) as left_out
from weighed where before < ${sql.bytesAtMost}
group by thread_id`,
);

export interface WantedParts {
  ranges: Array<{ threadId: string; list: number; from: number; to: number; ordinal: number }>;
  contents: Array<{ threadId: string; hash: string; ordinal: number }>;
}

/** Reads by ordinal until `bytesAtMost` is reached, the first ordinal whole. */
export const readParts = async (
  queryable: Queryable,
  { ranges, contents }: WantedParts,
  bytesAtMost: number,
): Promise<{ parts: Array<[threadId: string, parts: ReadParts]>; leftOut: number | undefined }> => {
  const rows = await READ_PARTS.query<{
    thread_id: string;
    elements: string | null;
    contents: string | null;
    left_out: number | null;
  }>(queryable, {
    rangeThreads: ranges.map(({ threadId }) => threadId),
    lists: ranges.map(({ list }) => list),
    froms: ranges.map(({ from }) => from),
    tos: ranges.map(({ to }) => to),
    rangeOrdinals: ranges.map(({ ordinal }) => ordinal),
    contentThreads: contents.map(({ threadId }) => threadId),
    hashes: contents.map(({ hash }) => hash),
    contentOrdinals: contents.map(({ ordinal }) => ordinal),
    bytesAtMost,
  });
  const parts: Array<[threadId: string, parts: ReadParts]> = [];
  for (const row of rows) {
    const whole = await wholeParts(queryable, row.thread_id, toParts(row, queryable.encryption));
    parts.push([row.thread_id, whole]);
  }
  return { parts, leftOut: rows[0]?.left_out ?? undefined };
};

interface StoredParts extends Pick<ReadParts, "elements"> {
  contents: StoredContent[];
}

/** Leaves out a part whose strings were deleted meanwhile. */
const wholeParts = async (queryable: Queryable, threadId: string, parts: StoredParts): Promise<ReadParts> => {
  const { elements } = parts;
  if (elements.length === 0 && parts.contents.length === 0) return { elements, contents: [] };
  const contents = await readContents(queryable, parts.contents);
  const texts = [...elements.flatMap((row) => row.texts), ...contents.map(({ text }) => text)];
  if (!texts.some(hasLargeStrings)) return { elements, contents };
  const literals = await readLargeStrings(queryable, threadId, texts);
  return {
    elements: elements.flatMap((row) => {
      const whole = row.texts.flatMap((text) => putBackLargeStrings(text, literals) ?? []);
      return whole.length < row.texts.length ? [] : [{ ...row, texts: whole }];
    }),
    contents: contents.flatMap(({ hash, text: stored }) => {
      const text = putBackLargeStrings(stored, literals);
      return text === undefined ? [] : [{ hash, text }];
    }),
  };
};

const toParts = (
  { elements, contents }: { elements: string | null; contents: string | null },
  encryption: Encryption,
): StoredParts => ({
  elements: (elements?.split(RECORD) ?? []).map((text) => {
    const end = text.indexOf(LINE);
    const [list, position] = text.slice(0, end).split(",").map(Number) as [number, number];
    const key = { list, position };
    const texts = encryption
      .decryptedValue("checkpoint_elements", "elements", text.slice(end + 1), key)
      .split(LINE);
    // A row without elements keeps the position of pruned elements.
    return { list, position, texts: texts[0] === "" ? [] : texts };
  }),
  contents: (contents?.split(RECORD) ?? []).map((text) => {
    const end = text.indexOf(LINE);
    const [hash = "", objectId = null] = text.slice(0, end).split(",");
    return { hash, objectId, content: text.slice(end + 1) };
  }),
});
