import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

const COPY_THREAD = statement(
  { from: "uuid", to: "uuid" },
  (sql) => `
with new_elements as (
  insert into threadloom.checkpoint_elements (thread_id, list_id, position, count, elements, strings,
    string_bytes)
  select ${sql.to}, list_id, position, count, elements, strings, string_bytes from threadloom.checkpoint_elements where thread_id = ${sql.from}
),
new_contents as (
  insert into threadloom.checkpoint_contents (thread_id, hash, content, strings, string_bytes, object_id,
    object_bytes)
  select ${sql.to}, hash, content, strings, string_bytes, object_id, object_bytes from threadloom.checkpoint_contents where thread_id = ${sql.from}
),
new_writes as (
  insert into threadloom.checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id, task_name, written_at, writes,
    segments, contents)
  select ${sql.to}, checkpoint_ns, checkpoint_id, task_id, run_id, task_name, written_at, writes, segments, contents
  from threadloom.checkpoint_writes where thread_id = ${sql.from}
)
insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text, shape,
  record, segments, contents, hidden, seq)
select ${sql.to}, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text, shape, record, segments,
  contents, hidden, seq
from threadloom.checkpoints where thread_id = ${sql.from}`,
);

export const copyThread = async (queryable: Queryable, from: string, to: string): Promise<void> => {
  await COPY_THREAD.query(queryable, { from, to });
};
