import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { parseCheckpointRow } from "../read/checkpoint-reader.ts";
import { readAncestors, readRows } from "../read/row-statements.ts";
import { deltaChannelsOf, HAS_DELTA_CHANNELS_OF_S } from "../rows/checkpoint-body.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import { freeUnreferenced } from "./freeing.ts";

type Sql = Readonly<Record<"threadId", string>>;

/**
 * The newest checkpoint of the root graph, of subgraphs with their own memory (no colon in the namespace), and of the
 * current step's subgraphs.
 */
const HEADS = (sql: Sql): string => `
root as (
  select checkpoint_id from threadloom.checkpoints
  where thread_id = ${sql.threadId} and checkpoint_ns = '' order by checkpoint_id desc limit 1
),
newest as (
  select distinct on (checkpoint_ns) checkpoint_ns, checkpoint_id
  from threadloom.checkpoints where thread_id = ${sql.threadId}
  order by checkpoint_ns, checkpoint_id desc
),
heads as (
  select * from newest n
  where n.checkpoint_ns not like '%:%' or n.checkpoint_id > (select checkpoint_id from root)
)`;

/** Deletes all but `kept`. */
const PRUNED = (sql: Sql, condition = "true"): string => `
gone as (
  delete from threadloom.checkpoints c
  where c.thread_id = ${sql.threadId} and ${condition} and not exists (
    select from kept k where k.checkpoint_ns = c.checkpoint_ns and k.checkpoint_id = c.checkpoint_id)
),
gone_writes as (
  delete from threadloom.checkpoint_writes w
  where w.thread_id = ${sql.threadId} and ${condition} and not exists (
    select from kept k where k.checkpoint_ns = w.checkpoint_ns and k.checkpoint_id = w.checkpoint_id)
),
first as (
  update threadloom.checkpoints c set parent_id = null
  from kept k
  where c.thread_id = ${sql.threadId} and ${condition}
    and c.checkpoint_ns = k.checkpoint_ns and c.checkpoint_id = k.checkpoint_id
    and c.parent_id is not null and not exists (
      select from kept p where p.checkpoint_ns = c.checkpoint_ns and p.checkpoint_id = c.parent_id)
)`;

/** Changes nothing in a thread with delta channels, and returns its heads with all shapes of their graphs. */
const KEEP_HEADS = statement(
  { threadId: "uuid" },
  (sql) => `
with ${HEADS(sql)},
delta as materialized (
  select from threadloom.checkpoint_shapes s
  where s.hash in (select shape from threadloom.checkpoints where thread_id = ${sql.threadId})
    and ${HAS_DELTA_CHANNELS_OF_S}
),
kept as (select checkpoint_ns, checkpoint_id from heads),
${PRUNED(sql, "not exists (select from delta)")}
select h.checkpoint_ns, h.checkpoint_id, array(
    select s.shape from threadloom.checkpoint_shapes s
    where s.hash in (
      select shape from threadloom.checkpoints
      where thread_id = ${sql.threadId} and checkpoint_ns = h.checkpoint_ns)
  ) as shapes
from heads h where exists (select from delta)`,
);

const KEEP = statement(
  { threadId: "uuid", namespaces: "text[]", checkpointIds: "uuid[]" },
  (sql) => `
with kept as materialized (
  select * from unnest(${sql.namespaces}, ${sql.checkpointIds}) as k (checkpoint_ns, checkpoint_id)
),
${PRUNED(sql)}
select`,
);

interface Head {
  checkpoint_ns: string;
  checkpoint_id: string;
  shapes: string[];
}

export const keepLatest = async (
  queryable: Queryable,
  threadId: string,
  shapes: KnownShapes,
): Promise<void> => {
  const namespaces: string[] = [];
  const checkpointIds: string[] = [];
  for (const head of await KEEP_HEADS.query<Head>(queryable, { threadId })) {
    for (const checkpointId of await neededBy(queryable, threadId, shapes, head)) {
      namespaces.push(head.checkpoint_ns);
      checkpointIds.push(checkpointId);
    }
  }
  if (namespaces.length > 0) await KEEP.query(queryable, { threadId, namespaces, checkpointIds });
  await freeUnreferenced(queryable, threadId);
};

const ANCESTORS_AT_A_TIME = 200;

/** The head, and the ancestors from which `readDeltaHistory` takes a value or a write, with all between. */
const neededBy = async (
  queryable: Queryable,
  threadId: string,
  shapes: KnownShapes,
  { checkpoint_ns: checkpointNs, checkpoint_id: head, shapes: texts }: Head,
): Promise<string[]> => {
  const open = new Set(texts.flatMap((text) => deltaChannelsOf(shapes.parse(text))));
  if (open.size === 0) return [head];
  const walked: string[] = [];
  let needed = 1;
  let rows = await readRows(queryable, { threadId, checkpointNs, checkpointId: head, limit: 1 });
  while (rows.length > 0 && open.size > 0) {
    for (const row of rows) {
      const { channels, writes } = parseCheckpointRow(row, queryable.encryption, shapes);
      walked.push(row.checkpoint_id);
      // LangGraph applies the head's own writes when the next step is stored.
      const isWritten = walked.length > 1 && writes.some(({ channel }) => open.has(channel));
      const values = channels.filter(([channel]) => open.delete(channel));
      if (isWritten || values.length > 0) needed = walked.length;
    }
    const last = walked[walked.length - 1];
    rows =
      last === undefined
        ? []
        : await readAncestors(queryable, threadId, checkpointNs, last, ANCESTORS_AT_A_TIME);
  }
  return walked.slice(0, needed);
};
