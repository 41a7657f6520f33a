import type { Queryable } from "../../../platform/database/database.ts";
import { freeUnreferenced } from "./freeing.ts";

/** One statement each. Also deletes what other runs wrote on the run's checkpoints. */
const DELETE_RUN_CHECKPOINTS = `
with gone as (
  delete from threadloom.checkpoints where thread_id = $1::uuid and run_id = $2::uuid returning checkpoint_ns, checkpoint_id
)
delete from threadloom.checkpoint_writes w using gone g
where w.thread_id = $1::uuid and w.checkpoint_ns = g.checkpoint_ns and w.checkpoint_id = g.checkpoint_id`;
const DELETE_RUN_WRITES =
  "delete from threadloom.checkpoint_writes where thread_id = $1::uuid and run_id = $2::uuid";

export const deleteRun = async (queryable: Queryable, threadId: string, runId: string): Promise<void> => {
  await queryable.query(DELETE_RUN_CHECKPOINTS, [threadId, runId]);
  await queryable.query(DELETE_RUN_WRITES, [threadId, runId]);
  await freeUnreferenced(queryable, threadId);
};

const DELETE_THREAD = `
with gone_elements as (delete from threadloom.checkpoint_elements where thread_id = $1::uuid),
gone_contents as (delete from threadloom.checkpoint_contents where thread_id = $1::uuid),
gone_writes as (delete from threadloom.checkpoint_writes where thread_id = $1::uuid)
delete from threadloom.checkpoints where thread_id = $1::uuid`;

export const deleteThread = async (queryable: Queryable, threadId: string): Promise<void> => {
  await queryable.query(DELETE_THREAD, [threadId]);
};
