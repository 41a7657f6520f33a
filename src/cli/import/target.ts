import { finishedTasks } from "../../graphs/pending-writes.ts";
import type { CheckpointStorage, StoredCheckpoint } from "../../state/checkpoints/types.ts";
import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { systemAssistantId } from "../../platform/domain/assistant-ids.ts";
import { storeImported } from "../../api/threads/imported.ts";

/** The metadata key of the thread's original id. */
export const IMPORTED_ID = "imported_thread_id";

interface Existing {
  /** An interrupted import may leave checkpoints without a record. */
  record: { importedId: string | null; busy: boolean } | undefined;
  checkpoints: Map<string, number>;
}

interface FinishedThread {
  key: string;
  sourceId: string;
  graphId: string | undefined;
  /** ISO 8601. */
  firstTime: string | null;
  lastTime: string | null;
}

export const checkpointKey = (checkpointNs: string, checkpointId: string): string =>
  `${checkpointNs}\n${checkpointId.toLowerCase()}`;

const FIND = statement(
  { threadId: "uuid" },
  (sql) => `select metadata ->> '${IMPORTED_ID}' as "importedId",
    unfinished_runs > 0 as busy
  from threadloom.threads where thread_id = ${sql.threadId}`,
);

export const createTarget = (database: Database, checkpoints: CheckpointStorage) => ({
  async existing(key: string): Promise<Existing> {
    const [record] = await FIND.query<NonNullable<Existing["record"]>>(database, { threadId: key });
    const counts = await checkpoints.countWrites(key);
    return {
      record,
      checkpoints: new Map(
        counts.map(({ checkpointNs, checkpointId, writes }) => [
          checkpointKey(checkpointNs, checkpointId),
          writes,
        ]),
      ),
    };
  },

  /** The record makes the thread visible. */
  async finish({ key, sourceId, graphId, firstTime, lastTime }: FinishedThread): Promise<void> {
    const interrupts = interruptsOf(await checkpoints.readHead(key));
    const metadata: JsonObject = {
      [IMPORTED_ID]: sourceId,
      ...(graphId !== undefined && { graph_id: graphId, assistant_id: systemAssistantId(graphId) }),
    };
    await storeImported(database, {
      threadId: key,
      status: interrupts === "{}" ? "idle" : "interrupted",
      metadata,
      interrupts,
      firstTime: timeOf(firstTime),
      lastTime: timeOf(lastTime),
    });
  },
});

export type Target = ReturnType<typeof createTarget>;

const timeOf = (text: string | null): string | null =>
  text === null || Number.isNaN(Date.parse(text)) ? null : new Date(text).toISOString();

/**
 * JSON text `{task_id: [{id, value}]}`: interrupts of tasks that are not done. The next run itself finds other due
 * nodes.
 */
const interruptsOf = (head: StoredCheckpoint | undefined): string => {
  const writes = head?.pendingWrites ?? [];
  const done = finishedTasks(writes);
  const waiting = writes
    .filter(
      ({ channel, taskId, value }) => channel === "__interrupt__" && value !== undefined && !done.has(taskId),
    )
    .map(({ taskId, value }) => [taskId, [JSON.parse(value ?? "null") as unknown].flat()]);
  return JSON.stringify(Object.fromEntries(waiting));
};
