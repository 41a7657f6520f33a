import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { ELEMENTS_PER_ROW_AT_MOST, type Batch } from "../rows/new-rows.ts";
import {
  ATTEMPT_PARAMETERS,
  HELD_BY_ATTEMPT,
  HELD_WHILE_IDLE,
  HELD_WHILE_UNCHANGED,
  VERSION_PARAMETERS,
  type AttemptSource,
  type Fence,
} from "./fences.ts";
import { BATCH_PARAMETERS, type BatchParameter, type BatchSource } from "./write-parameters.ts";

/** `fence` returns a row if the writer may write; `version`: the thread's version afterwards. */
const writeStatement = (
  sql: Readonly<Record<BatchParameter, string>>,
  fence: string,
  version = "null",
): string => `
with fence as materialized (${fence}),
new_elements as (
  insert into threadloom.checkpoint_elements (thread_id, list_id, position, count, elements)
  select ${sql.threadId}, e.list_id, e.position, e.count, e.elements
  from fence, unnest(${sql.elementLists}, ${sql.elementPositions}, ${sql.elementCounts},
      string_to_array(${sql.elementTexts}, E'\\x1e'))
    as e (list_id, position, count, elements)
),
new_contents as (
  insert into threadloom.checkpoint_contents (thread_id, hash, content)
  select ${sql.threadId}, c.hash, c.content
  from fence, unnest(${sql.contentHashes}, string_to_array(${sql.contentTexts}, E'\\x1e')) as c (hash, content)
  on conflict do nothing
),
new_checkpoints as (
  insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text,
    shape, record, segments, contents)
  select ${sql.threadId}, p.checkpoint_ns, p.checkpoint_id, p.parent_id, p.run_id, p.metadata::jsonb,
    nullif(p.metadata_text, ''), p.shape, p.record,
    string_to_array(nullif(p.segments, ''), ',')::bigint[], string_to_array(nullif(p.contents, ''), ',')::uuid[]
  from fence, unnest(${sql.checkpointNsOfEach}, ${sql.checkpointIds}, ${sql.checkpointParentIds},
      ${sql.checkpointRunIds}, string_to_array(${sql.checkpointMetadata}, E'\\x1e'),
      string_to_array(${sql.checkpointMetadataTexts}, E'\\x1e'), string_to_array(${sql.checkpointRecords}, E'\\x1e'),
      string_to_array(${sql.checkpointSegments}, E'\\x1e'), string_to_array(${sql.checkpointContents}, E'\\x1e'),
      ${sql.checkpointShapes})
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
  select ${sql.threadId}, w.field[1], w.field[2]::uuid, w.field[3]::uuid, w.field[4]::uuid, nullif(w.field[5], ''),
    w.field[6], string_to_array(nullif(w.field[7], ''), ',')::bigint[],
    string_to_array(nullif(w.field[8], ''), ',')::uuid[]
  from fence, (
    select string_to_array(line, E'\\x1f') from unnest(string_to_array(${sql.writes}, E'\\x1e')) as line
  ) as w (field)
  on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id) do update set
    writes = threadloom.merge_writes(checkpoint_writes.writes, excluded.writes),
    segments = checkpoint_writes.segments || excluded.segments,
    contents = checkpoint_writes.contents || excluded.contents
)
select exists (select from fence) as held, ${version} as version,
  case when ${sql.asynchronous} then set_config('synchronous_commit', 'off', true) end`;

interface Answer {
  held: boolean;
  version: string | null;
}

const WRITE_FREELY = statement(BATCH_PARAMETERS, (sql) => writeStatement(sql, "select 1"));
const WRITE_WHILE_IDLE = statement(BATCH_PARAMETERS, (sql) => writeStatement(sql, HELD_WHILE_IDLE(sql)));
const WRITE_WHILE_UNCHANGED = statement({ ...BATCH_PARAMETERS, ...VERSION_PARAMETERS }, (sql) =>
  writeStatement(sql, HELD_WHILE_UNCHANGED(sql), "(select version from fence)"),
);
const WRITE_AS_ATTEMPT = statement({ ...BATCH_PARAMETERS, ...ATTEMPT_PARAMETERS }, (sql) =>
  writeStatement(sql, HELD_BY_ATTEMPT(sql)),
);

interface BatchOptions {
  threadId: string;
  fence: Fence | undefined;
  /**
   * A crash may lose the last commits, each as a whole. The statement that ends a run waits until all earlier commits
   * are on the disk.
   */
  asynchronous: boolean;
  last?: AttemptSource["last"];
}

/**
 * False: the fence doesn't hold, and nothing is stored. Throws a unique violation of `checkpoint_elements_pkey` if
 * another writer took one of the positions.
 */
export const writeBatch = async (
  queryable: Queryable,
  { threadId, fence, asynchronous, last }: BatchOptions,
  batch: Batch,
): Promise<boolean> => {
  const elements = batch.elements.flatMap(rowsOf);
  const source: BatchSource = { ...batch, elements, threadId, asynchronous };
  const write = (): Promise<Answer[]> => {
    switch (fence?.kind) {
      case "attempt":
        return WRITE_AS_ATTEMPT.query(queryable, { ...source, ...fence, last });
      case "idle-thread":
        return WRITE_WHILE_IDLE.query(queryable, source);
      case "unchanged-thread":
        return WRITE_WHILE_UNCHANGED.query(queryable, { ...source, ...fence });
      case undefined:
        return WRITE_FREELY.query(queryable, source);
    }
  };
  const [answer] = await write();
  // This statement has raised the thread's version.
  if (fence?.kind === "unchanged-thread" && answer?.version) fence.threadVersion = answer.version;
  return answer?.held === true;
};

/** Limits rows, because a read fetches whole rows. */
const rowsOf = (stretch: Batch["elements"][number]): Batch["elements"] => {
  if (stretch.texts.length <= ELEMENTS_PER_ROW_AT_MOST) return [stretch];
  const rows: Batch["elements"] = [];
  for (let start = 0; start < stretch.texts.length; start += ELEMENTS_PER_ROW_AT_MOST) {
    const texts = stretch.texts.slice(start, start + ELEMENTS_PER_ROW_AT_MOST);
    rows.push({ list: stretch.list, position: stretch.position + start, texts });
  }
  return rows;
};
