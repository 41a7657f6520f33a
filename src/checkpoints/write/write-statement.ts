/**
 * The statement that checkpoints are written with. Texts travel in one parameter each, joined by control
 * characters that JSON never holds: as an array literal every quote in them would be escaped, and read twice.
 */

import type { Queryable } from "../../database/database.ts";
import { isUuid } from "../../lib/ids.ts";
import { LINE, RECORD, UNIT } from "../rows/separators.ts";
import { RUN_ELEMENTS_AT_MOST, type Batch } from "../rows/new-rows.ts";
import { threadKey } from "../rows/thread-key.ts";

/** In the key of writes, where null can't be. */
const NO_RUN = "00000000-0000-0000-0000-000000000000";
/**
 * Who may write: the attempt that holds the run, or whoever finds the thread without a run in progress; with a
 * version also unchanged, since what a prune or a rollback has freed meanwhile must not be referred to.
 */
export type Fence = { runId: string; attempt: number } | "idle-thread" | { threadVersion: string };

/*
 * `for share` orders the statement against a takeover, which updates the row: one that has begun is waited for and
 * the row then read afresh (no row: the attempt is over); one that comes later waits until this statement has
 * committed, so the new attempt finds what it wrote. `for key share` would conflict with neither. A heartbeat
 * updates the row, too, and may wait for the millisecond that this statement takes.
 */
const HELD_BY_ATTEMPT = `select 1 from threadloom.runs
  where run_id = $23::uuid and attempt = $24::integer and status = 'running'
    and ($25::uuid is null or exists (
      select from threadloom.checkpoints c
      where c.thread_id = $1::uuid and c.checkpoint_ns = $26::text and c.checkpoint_id = $25::uuid))
  for share`;

/*
 * A run that is created meanwhile updates the thread's row: this statement waits for it and then finds the thread
 * busy, or it waits for this statement and starts from what it wrote. By the change of `state_updated_at` it knows that
 * its own snapshot may be older than what was written (runs/repository.ts).
 */
const HELD_WHILE_IDLE = `update threadloom.threads set state_updated_at = clock_timestamp()
  where thread_id = $1::uuid and unfinished_runs = 0 returning 1`;

/*
 * The same for one who has read the state: `xmin` names the transaction that changed the row last. If the checkpoint is
 * there already, this very statement was committed and only its answer lost.
 */
const HELD_WHILE_UNCHANGED = `update threadloom.threads set state_updated_at = clock_timestamp()
  where thread_id = $1::uuid and unfinished_runs = 0 and (xmin = $23::xid or exists (
    select from threadloom.checkpoints c where c.thread_id = $1::uuid and c.checkpoint_id = any($9::uuid[])))
  returning xmin::text as version`;

const writeStatement = (fence: string, version = "null"): string => `
with fence as materialized (${fence}),
new_elements as (
  insert into threadloom.checkpoint_elements (thread_id, list_id, position, count, elements)
  select $1::uuid, e.list_id, e.position, e.count, e.elements
  from fence, unnest($2::bigint[], $3::integer[], $4::integer[], string_to_array($5::text, E'\\x1e'))
    as e (list_id, position, count, elements)
),
new_contents as (
  insert into threadloom.checkpoint_contents (thread_id, hash, content)
  select $1::uuid, c.hash, c.content
  from fence, unnest($6::uuid[], string_to_array($7::text, E'\\x1e')) as c (hash, content)
  on conflict do nothing
),
new_shapes as (
  insert into threadloom.checkpoint_shapes (hash, shape, metadata)
  select s.hash, s.shape, s.metadata::jsonb
  from fence, unnest($20::uuid[], string_to_array($21::text, E'\\x1e'), string_to_array($22::text, E'\\x1e'))
    as s (hash, shape, metadata)
  on conflict do nothing
),
new_checkpoints as (
  insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text,
    shape, record, segments, contents)
  select $1::uuid, p.checkpoint_ns, p.checkpoint_id, p.parent_id, p.run_id, p.metadata::jsonb,
    nullif(p.metadata_text, ''), p.shape, p.record,
    string_to_array(nullif(p.segments, ''), ',')::bigint[], string_to_array(nullif(p.contents, ''), ',')::uuid[]
  from fence, unnest($8::text[], $9::uuid[], $10::uuid[], $11::uuid[], string_to_array($12::text, E'\\x1e'),
      string_to_array($13::text, E'\\x1e'), string_to_array($14::text, E'\\x1e'), string_to_array($15::text, E'\\x1e'),
      string_to_array($16::text, E'\\x1e'), $17::uuid[])
    as p (checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text, record, segments, contents, shape)
  on conflict (thread_id, checkpoint_ns, checkpoint_id) do update set
    parent_id = excluded.parent_id, run_id = excluded.run_id, metadata = excluded.metadata,
    metadata_text = excluded.metadata_text, shape = excluded.shape,
    record = excluded.record || E'\\x1c' || checkpoints.record,
    segments = excluded.segments || checkpoints.segments, contents = excluded.contents || checkpoints.contents
),
new_writes as (
  insert into threadloom.checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id, task_name, writes, segments,
    contents)
  select $1::uuid, w.field[1], w.field[2]::uuid, w.field[3]::uuid, w.field[4]::uuid, nullif(w.field[5], ''), w.field[6],
    string_to_array(nullif(w.field[7], ''), ',')::bigint[], string_to_array(nullif(w.field[8], ''), ',')::uuid[]
  from fence, (
    select string_to_array(line, E'\\x1f') from unnest(string_to_array($18::text, E'\\x1e')) as line
  ) as w (field)
  on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id) do update set
    writes = threadloom.merge_writes(checkpoint_writes.writes, excluded.writes),
    segments = checkpoint_writes.segments || excluded.segments,
    contents = checkpoint_writes.contents || excluded.contents
)
select exists (select from fence) as held, ${version} as version,
  case when $19::boolean then set_config('synchronous_commit', 'off', true) end`;

const WRITE_FENCED = writeStatement(HELD_BY_ATTEMPT);
const WRITE_WHILE_IDLE = writeStatement(HELD_WHILE_IDLE);
const WRITE_WHILE_UNCHANGED = writeStatement(HELD_WHILE_UNCHANGED, "(select version from fence)");
const WRITE_FREELY = writeStatement("select 1");

export interface BatchOptions {
  threadId: string;
  /** Absent: anybody may write. */
  fence: Fence | undefined;
  /**
   * True: answer before the disk has it. A crash of the database may then lose the last moments, never a part of
   * them; the status that ends a run waits for the disk, and with it for all that was committed before.
   */
  asynchronous: boolean;
  /**
   * What this writer committed last, without waiting for the disk. If it isn't there, the database has crashed since
   * and lost it: nothing may refer to it, or to what came before.
   */
  last?: { checkpointNs: string; checkpointId: string };
}

/**
 * Stores a batch in one statement. Returns false, and has stored nothing, if the fence doesn't hold.
 * Throws a unique violation of `checkpoint_elements_pkey` if somebody else took one of the positions.
 */
export const writeBatch = async (
  queryable: Queryable,
  { threadId, fence, asynchronous, last }: BatchOptions,
  { elements, contents, shapes, checkpoints, writes }: Batch,
): Promise<boolean> => {
  const runs = elements.flatMap(splitRun);
  const joined = <Item>(items: Item[], text: (item: Item) => string): string => items.map(text).join(RECORD);
  const values: unknown[] = [
    threadId,
    runs.map((run) => run.list),
    runs.map((run) => run.position),
    runs.map((run) => run.texts.length),
    joined(runs, (run) => run.texts.join(LINE)),
    contents.map((content) => content.hash),
    joined(contents, (content) => content.text),
    checkpoints.map((checkpoint) => checkpoint.checkpointNs),
    checkpoints.map((checkpoint) => checkpoint.checkpointId),
    checkpoints.map((checkpoint) => checkpoint.parentId),
    checkpoints.map((checkpoint) => checkpoint.runId),
    joined(checkpoints, (checkpoint) => checkpoint.metadata),
    joined(checkpoints, (checkpoint) => checkpoint.metadataText),
    joined(checkpoints, (checkpoint) => checkpoint.record),
    joined(checkpoints, (checkpoint) => checkpoint.segments.join(",")),
    joined(checkpoints, (checkpoint) => checkpoint.contents.join(",")),
    checkpoints.map((checkpoint) => checkpoint.shape),
    joined(writes, (task) =>
      [
        task.checkpointNs,
        task.checkpointId,
        threadKey(task.taskId),
        task.runId ?? NO_RUN,
        isUuid(task.taskId) ? "" : task.taskId,
        task.writes,
        task.segments.join(),
        task.contents.join(),
      ].join(UNIT),
    ),
    asynchronous,
    shapes.map((shape) => shape.hash),
    joined(shapes, (shape) => shape.text),
    joined(shapes, (shape) => shape.metadata),
  ];
  let statement = fence === undefined ? WRITE_FREELY : WRITE_WHILE_IDLE;
  if (typeof fence === "object" && "runId" in fence) {
    statement = WRITE_FENCED;
    values.push(fence.runId, fence.attempt, last?.checkpointId ?? null, last?.checkpointNs ?? null);
  } else if (typeof fence === "object") {
    statement = WRITE_WHILE_UNCHANGED;
    values.push(fence.threadVersion);
  }
  const [row] = await queryable.query<{ held: boolean; version: string | null }>(statement, values);
  // This very statement has changed the thread: the next one of the same writer must not take it for a stranger's.
  if (row?.version && typeof fence === "object" && "threadVersion" in fence)
    fence.threadVersion = row.version;
  return row?.held === true;
};

/** Whether an attempt still holds its run. */
export const isHeld = async (
  queryable: Queryable,
  { runId, attempt }: { runId: string; attempt: number },
): Promise<boolean> => {
  const rows = await queryable.query(
    "select 1 from threadloom.runs where run_id = $1 and attempt = $2 and status = 'running'",
    [runId, attempt],
  );
  return rows.length > 0;
};

/** Rows of bounded size: a read fetches whole rows. */
const splitRun = (run: Batch["elements"][number]): Batch["elements"] => {
  if (run.texts.length <= RUN_ELEMENTS_AT_MOST) return [run];
  const rows: Batch["elements"] = [];
  for (let start = 0; start < run.texts.length; start += RUN_ELEMENTS_AT_MOST) {
    const texts = run.texts.slice(start, start + RUN_ELEMENTS_AT_MOST);
    rows.push({ list: run.list, position: run.position + start, texts });
  }
  return rows;
};
