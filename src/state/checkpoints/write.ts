import type { Database, Encryption } from "../../platform/database/database.ts";
import { LARGE_CHARACTERS, type GroupedStatement } from "../../platform/database/grouping.ts";
import { listStatement, type ComputedParameter, type List } from "../../platform/database/statement.ts";
import { referencesIn } from "../values/large-strings.ts";
import { toStoredContent, type NewContent } from "./contents.ts";
import {
  ATTEMPT_PARAMETERS,
  HELD_BY_ATTEMPT,
  HELD_FREELY,
  HELD_WHILE_IDLE,
  HELD_WHILE_UNCHANGED,
  type AttemptSource,
  type Fence,
  type UnchangedThreadFence,
} from "./fences.ts";
import type { NewNames } from "./names.ts";
import { keyOfWrites, RECORD, type TaskWrite } from "./record.ts";
import { threadKey } from "./thread-key.ts";

export interface NewCheckpoint {
  checkpointNs: string;
  checkpointId: string;
  parentId: string | null;
  runId: string | null;
  metadata: string;
  /** All metadata, if `metadata` is not exact. */
  metadataText: string;
  /** The hash of its names. */
  names: string;
  record: string;
  deltaChannels: readonly string[];
  /** Those of the same statement. */
  writes: string;
}

export interface NewWrites {
  checkpointNs: string;
  checkpointId: string;
  taskId: string;
  runId: string | null;
  writes: readonly TaskWrite[];
  text: string;
}

/** A task's writes, as they came. */
export type QueuedWrites = Omit<NewWrites, "text">;

/** One `put` or `putWrites`, with the contents that it needs. */
export interface QueueItem {
  checkpoint?: Omit<NewCheckpoint, "writes">;
  writes?: QueuedWrites;
  contents: readonly NewContent[];
  /** That the database may lack. */
  names?: NewNames | undefined;
}

export interface Batch {
  contents: readonly NewContent[];
  checkpoints: readonly NewCheckpoint[];
  /** At most one per checkpoint, task and run. */
  writes: readonly NewWrites[];
}

interface BatchSource extends Batch {
  threadId: string;
  /**
   * A crash may lose the last commits, each as a whole. The statement that ends a run waits until all earlier commits
   * are on the disk.
   */
  asynchronous: boolean;
}
type Batches = readonly BatchSource[];

interface FencedBatch extends BatchSource {
  fence: Fence | undefined;
  last: AttemptSource["last"];
}

/** Between the fields of a line. JSON never contains this control character. */
const FIELD = "\u001b";
/** Stands for null. */
const NO_RUN = "00000000-0000-0000-0000-000000000000";

/**
 * A table's rows are one text: a line per row, whose first field is the place of its batch. Arrays would escape every
 * quote, and `unnest` of ten arrays costs 40 µs more.
 */
const lines = <Row>(
  batches: Batches,
  rowsOf: (batch: BatchSource) => readonly Row[],
  fieldsOf: (row: Row) => readonly string[],
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

const hashesIn = (...texts: string[]): string => [...new Set(texts.flatMap(referencesIn))].join();

const contentLines = (batches: Batches, encryption?: Encryption): string =>
  lines(
    batches,
    ({ contents }) => contents,
    ({ hash, text: given }) => {
      const { text, hashes } = toStoredContent(given);
      return [
        hash,
        hashes.join(),
        encryption?.stored("checkpoint_contents", "content", text, { hash }) ?? text,
      ];
    },
  );

const checkpointLines = (batches: Batches, encryption?: Encryption): string =>
  lines(
    batches,
    ({ checkpoints }) => checkpoints,
    (row) => {
      const { record, writes } = row;
      const delta = row.deltaChannels.length === 0 ? "" : JSON.stringify(row.deltaChannels);
      return [
        ...[row.checkpointNs, row.checkpointId, row.parentId ?? "", row.runId ?? ""],
        ...[row.metadata, row.metadataText, row.names, delta, hashesIn(record, writes)],
        encryption?.stored("checkpoints", "record", record, keyOf(row)) ?? record,
        writes === ""
          ? writes
          : (encryption?.stored("checkpoints", "writes", writes, keyOfWrites(keyOf(row))) ?? writes),
      ];
    },
  );

const writeLines = (batches: Batches, encryption?: Encryption): string =>
  lines(
    batches,
    ({ writes }) => writes,
    (row) => {
      const key = { ...keyOf(row), task_id: threadKey(row.taskId) };
      return [
        ...[row.checkpointNs, row.checkpointId, key.task_id, row.runId ?? NO_RUN],
        ...[String(row.writes.some(({ index }) => index >= 0)), hashesIn(row.text)],
        encryption?.stored("checkpoint_writes", "writes", row.text, key) ?? row.text,
      ];
    },
  );

const ROWS = {
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

/** `fence` returns the threads that may be written to. */
const writeText = (sql: Readonly<Record<keyof typeof ROWS, string>>, list: List, fence: string): string => `
with fence as materialized (${fence}),
new_contents as (
  insert into threadloom.checkpoint_contents (thread_id, hash, contents, content)
  select thread_id, f[2]::uuid, ${uuids("f[3]")}, f[4]
  from ${linesOf(sql.contents, list)}
  on conflict do nothing
),
new_checkpoints as (
  insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text,
    names, delta_channels, contents, record, writes)
  select thread_id, f[2], f[3]::uuid, nullif(f[4], '')::uuid, nullif(f[5], '')::uuid, f[6]::jsonb, nullif(f[7], ''),
    f[8]::uuid, case when f[9] <> '' then array(select json_array_elements_text(f[9]::json)) end, ${uuids("f[10]")},
    f[11], nullif(f[12], '')
  from ${linesOf(sql.checkpoints, list)}
  order by line_place
  on conflict (thread_id, checkpoint_ns, checkpoint_id) do update set
    parent_id = excluded.parent_id, run_id = excluded.run_id, metadata = excluded.metadata,
    metadata_text = excluded.metadata_text, names = excluded.names, record = excluded.record,
    delta_channels = excluded.delta_channels,
    writes = nullif(concat_ws(E'\\x1e', checkpoints.writes, excluded.writes), ''),
    contents = checkpoints.contents || excluded.contents
),
new_writes as (
  insert into threadloom.checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id, ended, contents,
    writes)
  select thread_id, f[2], f[3]::uuid, f[4]::uuid, f[5]::uuid, f[6]::boolean, ${uuids("f[7]")}, f[8]
  from ${linesOf(sql.writes, list)}
  on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id) do update set
    ended = checkpoint_writes.ended or excluded.ended,
    writes = checkpoint_writes.writes || E'\\x1e' || excluded.writes,
    contents = checkpoint_writes.contents || excluded.contents
)
select thread_id, version, case when ${sql.asynchronous} then set_config('synchronous_commit', 'off', true) end from fence`;

/** A thread without a row has a fence that does not hold. */
interface Held {
  thread_id: string;
  version: string | null;
}

const WRITE_FREELY = listStatement(THREAD, ROWS, (sql, list) => writeText(sql, list, HELD_FREELY(sql)));
const WRITE_WHILE_IDLE = listStatement(THREAD, ROWS, (sql, list) =>
  writeText(sql, list, HELD_WHILE_IDLE(sql)),
);
const WRITE_WHILE_UNCHANGED = listStatement(
  {
    ...THREAD,
    threadVersion: ["bigint", ({ threadVersion }: BatchSource & UnchangedThreadFence) => threadVersion],
    checkpointIds: ["uuid[]", ({ checkpoints }: BatchSource) => checkpoints.map((row) => row.checkpointId)],
  },
  ROWS,
  (sql, list) => writeText(sql, list, HELD_WHILE_UNCHANGED(sql)),
);
const WRITE_AS_ATTEMPT = listStatement({ ...THREAD, ...ATTEMPT_PARAMETERS }, ROWS, (sql, list) =>
  writeText(sql, list, HELD_BY_ATTEMPT(sql, list)),
);

/** Loops, because callbacks would cost a call per text. */
const isLarge = ({ checkpoints, contents, writes }: Batch): boolean => {
  let characters = 0;
  for (const row of checkpoints) characters += row.record.length + row.metadata.length + row.writes.length;
  for (const { text } of contents) characters += text.length;
  for (const { text } of writes) characters += text.length;
  return characters > LARGE_CHARACTERS;
};

const AS_ATTEMPT: GroupedStatement<BatchSource & AttemptSource, Held> = {
  threadOf: ({ threadId }) => threadId,
  isSeparate: isLarge,
  query: (queryable, all) => WRITE_AS_ATTEMPT.query(queryable, all),
};

/** False: the fence doesn't hold, and nothing is stored. */
export const writeBatch = async (
  database: Database,
  { fence, last, ...source }: FencedBatch,
): Promise<boolean> => {
  const write = async (): Promise<Held | undefined> => {
    switch (fence?.kind) {
      case "attempt":
        return await database.grouped(AS_ATTEMPT, { ...source, ...fence, last });
      case "idle-thread":
        return (await WRITE_WHILE_IDLE.query<Held>(database, [source]))[0];
      case "unchanged-thread":
        return (await WRITE_WHILE_UNCHANGED.query<Held>(database, [{ ...source, ...fence }]))[0];
      case undefined:
        return (await WRITE_FREELY.query<Held>(database, [source]))[0];
    }
  };
  const held = await write();
  // This statement has raised the thread's version.
  if (fence?.kind === "unchanged-thread" && held?.version) fence.threadVersion = held.version;
  return held !== undefined;
};
