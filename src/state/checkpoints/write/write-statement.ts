import { statement } from "../../../platform/database/statement.ts";
import {
  ATTEMPT_PARAMETERS,
  HELD_BY_ATTEMPT,
  HELD_WHILE_IDLE,
  HELD_WHILE_UNCHANGED,
  VERSION_PARAMETERS,
} from "./fences.ts";
import { BATCH_PARAMETERS, type BatchParameter } from "./write-parameters.ts";

type Sql = Readonly<Record<BatchParameter, string>>;
/** `fence` returns the thread's row if the writer may write. */
const writeStatement = (sql: Sql, fence: string, version = "null"): string => `${insertRows(sql, fence)}
select exists (select from fence) as held, ${version} as version,
  case when ${sql.asynchronous} then set_config('synchronous_commit', 'off', true) end`;

const insertRows = (sql: Sql, fence: string): string => {
  const rows = (arrays: string, alias: string, columns: string): string =>
    `fence, unnest(${arrays}) with ordinality as ${alias} (${columns}, place)`;
  return `
with fence as materialized (${fence}),
new_elements as (
  insert into threadloom.checkpoint_elements (thread_id, list_id, position, count, elements, strings, string_bytes)
  select ${sql.threadId}, e.list_id, e.position, e.count, e.elements,
    string_to_array(nullif(e.strings, ''), ',')::uuid[], e.string_bytes
  from ${rows(
    `${sql.elementLists}, ${sql.elementPositions}, ${sql.elementCounts}, string_to_array(${sql.elementTexts}, E'\\x1e'),
      string_to_array(${sql.elementStrings}, E'\\x1e'), ${sql.elementStringBytes}`,
    "e",
    "list_id, position, count, elements, strings, string_bytes",
  )}
),
new_contents as (
  insert into threadloom.checkpoint_contents (thread_id, hash, content, strings, string_bytes)
  select ${sql.threadId}, c.hash, c.content, string_to_array(nullif(c.strings, ''), ',')::uuid[], c.string_bytes
  from ${rows(
    `${sql.contentHashes}, string_to_array(${sql.contentTexts}, E'\\x1e'),
      string_to_array(${sql.contentStrings}, E'\\x1e'), ${sql.contentStringBytes}`,
    "c",
    "hash, content, strings, string_bytes",
  )}
  on conflict do nothing
),
new_checkpoints as (
  insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text,
    shape, record, segments, contents)
  select ${sql.threadId}, p.checkpoint_ns, p.checkpoint_id, p.parent_id, p.run_id, p.metadata::jsonb,
    nullif(p.metadata_text, ''), p.shape, p.record,
    string_to_array(nullif(p.segments, ''), ',')::bigint[], string_to_array(nullif(p.contents, ''), ',')::uuid[]
  from ${rows(
    `${sql.checkpointNsOfEach}, ${sql.checkpointIds}, ${sql.checkpointParentIds},
      ${sql.checkpointRunIds}, string_to_array(${sql.checkpointMetadata}, E'\\x1e'),
      string_to_array(${sql.checkpointMetadataTexts}, E'\\x1e'), string_to_array(${sql.checkpointRecords}, E'\\x1e'),
      string_to_array(${sql.checkpointSegments}, E'\\x1e'), string_to_array(${sql.checkpointContents}, E'\\x1e'),
      ${sql.checkpointShapes}`,
    "p",
    "checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text, record, segments, contents, shape",
  )}
  order by p.place
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
)`;
};

export interface Answer {
  held: boolean;
  version: string | null;
}

export const WRITE_FREELY = statement(BATCH_PARAMETERS, (sql) => writeStatement(sql, "select 1"));
export const WRITE_WHILE_IDLE = statement(BATCH_PARAMETERS, (sql) =>
  writeStatement(sql, HELD_WHILE_IDLE(sql)),
);
export const WRITE_WHILE_UNCHANGED = statement({ ...BATCH_PARAMETERS, ...VERSION_PARAMETERS }, (sql) =>
  writeStatement(sql, HELD_WHILE_UNCHANGED(sql), "(select version from fence)"),
);
export const WRITE_AS_ATTEMPT = statement({ ...BATCH_PARAMETERS, ...ATTEMPT_PARAMETERS }, (sql) =>
  writeStatement(sql, HELD_BY_ATTEMPT(sql)),
);
