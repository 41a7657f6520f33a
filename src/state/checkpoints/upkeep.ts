import type { Queryable } from "../../platform/database/database.ts";
import { isRunningRun } from "../../platform/database/grouping.ts";
import { statement } from "../../platform/database/statement.ts";

const COPY_THREAD = statement(
  { from: "uuid", to: "uuid" },
  (sql) => `
with new_contents as (
  insert into threadloom.checkpoint_contents (thread_id, hash, content, contents, object_id, object_bytes)
  select ${sql.to}, hash, content, contents, object_id, object_bytes
  from threadloom.checkpoint_contents where thread_id = ${sql.from}
),
new_writes as (
  insert into threadloom.checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id, written_at, ended,
    writes, contents)
  select ${sql.to}, checkpoint_ns, checkpoint_id, task_id, run_id, written_at, ended, writes, contents
  from threadloom.checkpoint_writes where thread_id = ${sql.from}
)
insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text,
  names, record, writes, delta_channels, contents, hidden, seq)
select ${sql.to}, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text, names, record, writes,
  delta_channels, contents, hidden, seq
from threadloom.checkpoints where thread_id = ${sql.from}`,
);

/** The copy shares no row with its source, and the objects of both. */
export const copyThread = async (queryable: Queryable, from: string, to: string): Promise<void> => {
  await COPY_THREAD.query(queryable, { from, to });
};

/** `gone`: deleted contents. */
const NOTE_UNUSED = (gone: string): string => `
insert into threadloom.unused_objects (thread_id, object_id)
select thread_id, object_id from ${gone} where object_id is not null on conflict do nothing`;

/** Keeps what any row of the thread refers to, also through other contents. Index: checkpoint_contents_pkey. */
const FREE_CONTENTS = statement(
  { threadId: "uuid" },
  (sql) => `
with recursive kept (hash) as (
  select * from (
    select unnest(contents) from threadloom.checkpoints where thread_id = ${sql.threadId}
    union
    select unnest(contents) from threadloom.checkpoint_writes where thread_id = ${sql.threadId}
    union
    select unnest(strings) from threadloom.run_events where thread_id = ${sql.threadId} and strings is not null
    union
    select unnest(strings) from threadloom.runs where thread_id = ${sql.threadId} and strings is not null
  ) as named
  union
  select unnest(c.contents) from kept
  join threadloom.checkpoint_contents c on c.thread_id = ${sql.threadId} and c.hash = kept.hash
),
freed as (
  delete from threadloom.checkpoint_contents c
  where c.thread_id = ${sql.threadId} and not exists (select from kept where kept.hash = c.hash)
  returning c.thread_id, c.object_id
)
${NOTE_UNUSED("freed")}`,
);

/** Deletes contents that nothing needs. The caller holds a lock of the thread that keeps writers away. */
export const freeUnreferenced = async (queryable: Queryable, threadId: string): Promise<void> => {
  await FREE_CONTENTS.query(queryable, { threadId });
};

/** Also deletes the writes of other runs on the run's checkpoints. */
const DELETE_RUN_CHECKPOINTS = statement(
  { threadId: "uuid", runId: "uuid" },
  (sql) => `
with gone as (
  delete from threadloom.checkpoints where thread_id = ${sql.threadId} and run_id = ${sql.runId} returning checkpoint_ns, checkpoint_id
)
delete from threadloom.checkpoint_writes w using gone g
where w.thread_id = ${sql.threadId} and w.checkpoint_ns = g.checkpoint_ns and w.checkpoint_id = g.checkpoint_id`,
);
const DELETE_RUN_WRITES = statement(
  { threadId: "uuid", runId: "uuid" },
  (sql) =>
    `delete from threadloom.checkpoint_writes where thread_id = ${sql.threadId} and run_id = ${sql.runId}`,
);

export const deleteRun = async (queryable: Queryable, threadId: string, runId: string): Promise<void> => {
  await DELETE_RUN_CHECKPOINTS.query(queryable, { threadId, runId });
  await DELETE_RUN_WRITES.query(queryable, { threadId, runId });
  await freeUnreferenced(queryable, threadId);
};

/**
 * Deletes what the run wrote for tasks that have not ended. Only the run's current attempt deletes.
 */
const DELETE_UNENDED = statement(
  { threadId: "uuid", runId: "uuid", attempt: "integer" },
  (sql) => `
delete from threadloom.checkpoint_writes w
where w.thread_id = ${sql.threadId} and w.run_id = ${sql.runId} and not w.ended
  and exists (select from threadloom.runs r where ${isRunningRun(sql)})`,
);

export const deleteUnended = async (
  queryable: Queryable,
  source: { threadId: string; runId: string; attempt: number },
): Promise<void> => {
  await DELETE_UNENDED.query(queryable, source);
};

const DELETE_THREAD = statement(
  { threadId: "uuid" },
  (sql) => `
with gone_contents as (delete from threadloom.checkpoint_contents where thread_id = ${sql.threadId}
  returning thread_id, object_id),
unused as (${NOTE_UNUSED("gone_contents")}),
gone_writes as (delete from threadloom.checkpoint_writes where thread_id = ${sql.threadId})
delete from threadloom.checkpoints where thread_id = ${sql.threadId}`,
);

export const deleteThread = async (queryable: Queryable, threadId: string): Promise<void> => {
  await DELETE_THREAD.query(queryable, { threadId });
};
