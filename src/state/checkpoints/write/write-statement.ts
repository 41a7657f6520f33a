import { listStatement, type ComputedParameter, type List } from "../../../platform/database/statement.ts";
import type { Encryption } from "../../../platform/database/database.ts";
import { isUuid } from "../../../platform/lib/ids.ts";
import { largeStringsOf, REFERENCE_MARK } from "../../values/large-strings.ts";
import { storedWrites } from "../rows/encryption.ts";
import type { Batch } from "../rows/new-rows.ts";
import { FIELD, LINE, RECORD } from "../rows/separators.ts";
import { threadKey } from "../rows/thread-key.ts";
import {
  ATTEMPT_PARAMETERS,
  HELD_BY_ATTEMPT,
  HELD_FREELY,
  HELD_WHILE_IDLE,
  HELD_WHILE_UNCHANGED,
  type UnchangedThreadFence,
} from "./fences.ts";

export interface BatchSource extends Batch {
  threadId: string;
  asynchronous: boolean;
}
type Batches = readonly BatchSource[];

/** Stands for null. */
const NO_RUN = "00000000-0000-0000-0000-000000000000";

/**
 * A table's rows are one text: a line per row, whose first field is the place of its batch. Arrays would escape every
 * quote, and `unnest` of ten arrays costs 40 µs more.
 */
const lines = <Row>(
  batches: Batches,
  rowsOf: (batch: BatchSource) => readonly Row[],
  fieldsOf: (row: Row) => readonly (string | number)[],
): string => {
  const texts: string[] = [];
  for (const [index, batch] of batches.entries())
    for (const row of rowsOf(batch)) texts.push([index + 1, ...fieldsOf(row)].join(FIELD));
  return texts.join(RECORD);
};

const keyOf = ({ checkpointNs, checkpointId }: { checkpointNs: string; checkpointId: string }) => ({
  checkpoint_ns: checkpointNs,
  checkpoint_id: checkpointId,
});

/** Two fields: the hashes of the large strings of a row, and their bytes. */
const stringsOf = (texts: readonly string[]): readonly (string | number)[] => {
  // A loop, because each run would pay for the callbacks.
  for (const text of texts) {
    if (!text.includes(REFERENCE_MARK)) continue;
    const strings = texts.flatMap(largeStringsOf);
    // A reader gets each repetition.
    const bytes = strings.reduce((sum, one) => sum + one.bytes, 0);
    return [[...new Set(strings.map(({ hash }) => hash))].join(), bytes || ""];
  }
  return ["", ""];
};

const elementLines = (batches: Batches, encryption?: Encryption): string =>
  lines(
    batches,
    ({ elements }) => elements,
    (row) => {
      const text = row.texts.join(LINE);
      const stored = encryption?.stored("checkpoint_elements", "elements", text, row) ?? text;
      return [row.list, row.position, row.texts.length, ...stringsOf(row.texts), stored];
    },
  );

const contentLines = (batches: Batches, encryption?: Encryption): string =>
  lines(
    batches,
    ({ contents }) => contents,
    (row) => [
      row.hash,
      ...stringsOf([row.text]),
      encryption?.stored("checkpoint_contents", "content", row.text, row) ?? row.text,
    ],
  );

const checkpointLines = (batches: Batches, encryption?: Encryption): string =>
  lines(
    batches,
    ({ checkpoints }) => checkpoints,
    (row) => [
      ...[row.checkpointNs, row.checkpointId, row.parentId ?? "", row.runId ?? ""],
      ...[row.metadata, row.metadataText, row.shape, row.segments.join(), row.contents.join()],
      encryption?.stored("checkpoints", "record", row.record, keyOf(row)) ?? row.record,
    ],
  );

const writeLines = (batches: Batches, encryption?: Encryption): string =>
  lines(
    batches,
    ({ writes }) => writes,
    (task) => [
      ...[task.checkpointNs, task.checkpointId, threadKey(task.taskId), task.runId ?? NO_RUN],
      ...[isUuid(task.taskId) ? "" : task.taskId, task.segments.join(), task.contents.join()],
      encryption === undefined
        ? task.writes
        : storedWrites(encryption, task.writes, keyOf(task), task.taskId),
    ],
  );

const ROWS = {
  elements: ["text", elementLines, elementLines],
  contents: ["text", contentLines, contentLines],
  checkpoints: ["text", checkpointLines, checkpointLines],
  writes: ["text", writeLines, writeLines],
  asynchronous: ["boolean", (batches: Batches) => batches.every(({ asynchronous }) => asynchronous)],
} satisfies Record<string, ComputedParameter<Batches>>;
const THREAD = {
  threadId: ["uuid", ({ threadId }: BatchSource) => threadId],
} satisfies Record<string, ComputedParameter<BatchSource>>;

/** The fields of the lines of `text`, as `f`. `offset 0` splits each line once. */
const linesOf = (text: string, { isOne }: List): string => `fence join (
    select string_to_array(line, E'\\x1b') as f, line_place
    from unnest(string_to_array(${text}, E'\\x1e')) with ordinality as lines (line, line_place) offset 0
  ) as lines on ${isOne ? "true" : "f[1]::integer = fence.place"}`;
const uuids = (field: string): string => `string_to_array(nullif(${field}, ''), ',')::uuid[]`;
const segments = (field: string): string => `string_to_array(nullif(${field}, ''), ',')::bigint[]`;

/** `fence` returns the threads that may be written to. */
const writeText = (sql: Readonly<Record<keyof typeof ROWS, string>>, list: List, fence: string): string => `
with fence as materialized (${fence}),
new_elements as (
  insert into threadloom.checkpoint_elements (thread_id, list_id, position, count, strings, string_bytes, elements)
  select thread_id, f[2]::bigint, f[3]::integer, f[4]::integer, ${uuids("f[5]")}, nullif(f[6], '')::integer, f[7]
  from ${linesOf(sql.elements, list)}
),
new_contents as (
  insert into threadloom.checkpoint_contents (thread_id, hash, strings, string_bytes, content)
  select thread_id, f[2]::uuid, ${uuids("f[3]")}, nullif(f[4], '')::integer, f[5]
  from ${linesOf(sql.contents, list)}
  on conflict do nothing
),
new_checkpoints as (
  insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text,
    shape, segments, contents, record)
  select thread_id, f[2], f[3]::uuid, nullif(f[4], '')::uuid, nullif(f[5], '')::uuid, f[6]::jsonb, nullif(f[7], ''),
    f[8]::uuid, ${segments("f[9]")}, ${uuids("f[10]")}, f[11]
  from ${linesOf(sql.checkpoints, list)}
  order by line_place
  on conflict (thread_id, checkpoint_ns, checkpoint_id) do update set
    parent_id = excluded.parent_id, run_id = excluded.run_id, metadata = excluded.metadata,
    metadata_text = excluded.metadata_text, shape = excluded.shape,
    record = excluded.record || E'\\x1c' || checkpoints.record,
    segments = excluded.segments || checkpoints.segments, contents = excluded.contents || checkpoints.contents
),
new_writes as (
  insert into threadloom.checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id, task_name, segments,
    contents, writes)
  select thread_id, f[2], f[3]::uuid, f[4]::uuid, f[5]::uuid, nullif(f[6], ''), ${segments("f[7]")}, ${uuids("f[8]")}, f[9]
  from ${linesOf(sql.writes, list)}
  on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id) do update set
    writes = threadloom.merge_writes(checkpoint_writes.writes, excluded.writes),
    segments = checkpoint_writes.segments || excluded.segments,
    contents = checkpoint_writes.contents || excluded.contents
)
select thread_id, version, case when ${sql.asynchronous} then set_config('synchronous_commit', 'off', true) end from fence`;

/** A thread without a row has a fence that does not hold. */
export interface Held {
  thread_id: string;
  version: string | null;
}

export const WRITE_FREELY = listStatement(THREAD, ROWS, (sql, list) =>
  writeText(sql, list, HELD_FREELY(sql)),
);
export const WRITE_WHILE_IDLE = listStatement(THREAD, ROWS, (sql, list) =>
  writeText(sql, list, HELD_WHILE_IDLE(sql)),
);
export const WRITE_WHILE_UNCHANGED = listStatement(
  {
    ...THREAD,
    threadVersion: ["bigint", ({ threadVersion }: BatchSource & UnchangedThreadFence) => threadVersion],
    checkpointIds: ["uuid[]", ({ checkpoints }: BatchSource) => checkpoints.map((row) => row.checkpointId)],
  },
  ROWS,
  (sql, list) => writeText(sql, list, HELD_WHILE_UNCHANGED(sql)),
);
export const WRITE_AS_ATTEMPT = listStatement({ ...THREAD, ...ATTEMPT_PARAMETERS }, ROWS, (sql, list) =>
  writeText(sql, list, HELD_BY_ATTEMPT(sql, list)),
);
