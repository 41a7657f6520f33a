import type { Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { CheckpointReader } from "./reader.ts";
import { readAncestors, readRow, type ClosedRow } from "./rows.ts";
import { freeUnreferenced } from "./upkeep.ts";

type Sql = Readonly<Record<"threadId", string>>;

/**
 * The newest checkpoint of the root graph, of subgraphs with their own memory (no colon in the namespace), and of the
 * current step's subgraphs. With durability `exit`, these are stored before the root graph.
 */
const HEADS = (sql: Sql): string => `
root as (
  select checkpoint_id, seq from threadloom.checkpoints
  where thread_id = ${sql.threadId} and checkpoint_ns = '' order by seq desc limit 1
),
newest as (
  select distinct on (checkpoint_ns) checkpoint_ns, checkpoint_id, seq,
    metadata -> 'parents' ->> '' as root_id
  from threadloom.checkpoints where thread_id = ${sql.threadId}
  order by checkpoint_ns, seq desc
),
heads as (
  select n.* from newest n left join root on true
  where n.checkpoint_ns not like '%:%' or n.seq > root.seq or n.root_id = root.checkpoint_id::text
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
)`;

const IS_FIRST_KEPT = `not exists (
    select from kept p where p.checkpoint_ns = c.checkpoint_ns and p.checkpoint_id = c.parent_id)`;

/** Changes nothing in a thread with delta channels, and returns its heads with all delta channels of their graphs. */
const KEEP_HEADS = statement(
  { threadId: "uuid" },
  (sql) => `
with ${HEADS(sql)},
delta as materialized (
  select from threadloom.checkpoints where thread_id = ${sql.threadId} and delta_channels is not null limit 1
),
kept as (select checkpoint_ns, checkpoint_id from heads),
${PRUNED(sql, "not exists (select from delta)")},
first as (
  update threadloom.checkpoints c set parent_id = null
  from kept k
  where c.thread_id = ${sql.threadId} and c.checkpoint_ns = k.checkpoint_ns and c.checkpoint_id = k.checkpoint_id
    and c.parent_id is not null and not exists (select from delta) and ${IS_FIRST_KEPT}
)
select h.checkpoint_ns, h.checkpoint_id, array(
    select distinct unnest(delta_channels) from threadloom.checkpoints
    where thread_id = ${sql.threadId} and checkpoint_ns = h.checkpoint_ns
  ) as delta_channels
from heads h where exists (select from delta)`,
);

const KEEP = statement(
  { threadId: "uuid", namespaces: "text[]", checkpointIds: "uuid[]", hidden: "boolean[]" },
  (sql) => `
with kept as materialized (
  select * from unnest(${sql.namespaces}, ${sql.checkpointIds}, ${sql.hidden}) as k (checkpoint_ns, checkpoint_id, hidden)
),
${PRUNED(sql)}
update threadloom.checkpoints c
set parent_id = case when ${IS_FIRST_KEPT} then null else c.parent_id end, hidden = case when k.hidden then true else c.hidden end
from kept k
where c.thread_id = ${sql.threadId} and c.checkpoint_ns = k.checkpoint_ns and c.checkpoint_id = k.checkpoint_id
  and (k.hidden and c.hidden is null or c.parent_id is not null and ${IS_FIRST_KEPT})`,
);

interface Head {
  checkpoint_ns: string;
  checkpoint_id: string;
  delta_channels: string[];
}

interface Needed {
  checkpointId: string;
  /** Its own state needs ancestors that go. */
  isIncomplete: boolean;
}

export const keepLatest = async (
  queryable: Queryable,
  threadId: string,
  reader: CheckpointReader,
): Promise<void> => {
  const kept: (Needed & { namespace: string })[] = [];
  for (const head of await KEEP_HEADS.query<Head>(queryable, { threadId })) {
    const needed = await neededBy(queryable, threadId, reader, head);
    kept.push(...needed.map((checkpoint) => ({ ...checkpoint, namespace: head.checkpoint_ns })));
  }
  if (kept.length > 0) {
    await KEEP.query(queryable, {
      threadId,
      namespaces: kept.map(({ namespace }) => namespace),
      checkpointIds: kept.map(({ checkpointId }) => checkpointId),
      hidden: kept.map(({ isIncomplete }) => isIncomplete),
    });
  }
  await freeUnreferenced(queryable, threadId);
};

const ANCESTORS_AT_A_TIME = 200;

/** The head, and the ancestors from which `readDeltaHistory` takes a value or a write, with all between. */
const neededBy = async (
  queryable: Queryable,
  threadId: string,
  reader: CheckpointReader,
  { checkpoint_ns: checkpointNs, checkpoint_id: head, delta_channels: deltaChannels }: Head,
): Promise<Needed[]> => {
  const open = new Set(deltaChannels);
  const walked: { checkpointId: string; isFirst: boolean; values: string[] }[] = [];
  let needed = 1;
  const first = await readRow(queryable, { threadId, checkpointNs, checkpointId: head });
  let rows: ClosedRow[] = first === undefined ? [] : [first];
  while (rows.length > 0) {
    for (const row of rows) {
      const { channels, row: opened } = reader.texts(row);
      const values = deltaChannels.filter((channel) => channels.has(channel));
      walked.push({ checkpointId: row.checkpoint_id, isFirst: row.parent_id === null, values });
      // The writes at the head are for the next checkpoint.
      const isWritten = walked.length > 1 && opened.writes.some(({ channel }) => open.has(channel));
      if (isWritten || values.some((channel) => open.has(channel))) needed = walked.length;
      for (const channel of values) open.delete(channel);
      if (open.size === 0) break;
    }
    const last = walked[walked.length - 1];
    if (open.size === 0 || last === undefined) break;
    rows = await readAncestors(queryable, threadId, checkpointNs, last.checkpointId, ANCESTORS_AT_A_TIME);
  }
  const kept = walked.slice(0, needed);
  const complete = kept[needed - 1]?.isFirst ? needed : completeIn(kept.map(({ values }) => values));
  return kept.map(({ checkpointId }, index) => ({ checkpointId, isIncomplete: index >= complete }));
};

/** How many checkpoints, from the newest, find a value of each channel that has one. */
const completeIn = (values: readonly (readonly string[])[]): number => {
  const oldest = new Map<string, number>();
  for (const [index, channels] of values.entries())
    for (const channel of channels) oldest.set(channel, index);
  return Math.min(values.length, ...[...oldest.values()].map((index) => index + 1));
};
