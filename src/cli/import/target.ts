import { COUNT_WRITES_OF_C } from "../../state/checkpoints/rows/row-text.ts";
import { finishedTasks } from "../../graphs/pending-writes.ts";
import type { CheckpointStorage, StoredCheckpoint } from "../../state/checkpoints/types.ts";
import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { sqlState } from "../../platform/domain/errors.ts";
import { systemAssistantId } from "../../platform/domain/assistant-ids.ts";
import { mergeImported, storeImported } from "../../api/threads/imported.ts";

/** The metadata key of the thread's original id. */
export const IMPORTED_ID = "imported_thread_id";

interface Existing {
  /** An interrupted import may leave checkpoints without a record. */
  record: { importedId: string | null; graphId: string | null; busy: boolean } | undefined;
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

export interface Target {
  existing(key: string): Promise<Existing>;
  /** The record makes the thread visible. */
  finish(thread: FinishedThread): Promise<void>;
  /** Has no effect during a run. */
  assign(key: string, graphId: string): Promise<void>;
}

export const NO_TARGET: Target = {
  existing: () => Promise.resolve({ record: undefined, checkpoints: new Map() }),
  finish: () => Promise.reject(new Error("There is no database to write to.")),
  assign: () => Promise.reject(new Error("There is no database to write to.")),
};

export const checkpointKey = (checkpointNs: string, checkpointId: string): string =>
  `${checkpointNs}\n${checkpointId.toLowerCase()}`;

const FIND = statement(
  { threadId: "uuid" },
  (sql) => `select metadata ->> '${IMPORTED_ID}' as "importedId",
    metadata ->> 'graph_id' as "graphId", unfinished_runs > 0 as busy
  from threadloom.threads where thread_id = ${sql.threadId}`,
);

const LIST_CHECKPOINTS = statement(
  { threadId: "uuid" },
  (sql) => `
  select c.checkpoint_ns, c.checkpoint_id, (${COUNT_WRITES_OF_C} + coalesce(w.writes, 0))::integer as writes
  from threadloom.checkpoints c
  left join (
    select checkpoint_ns, checkpoint_id, sum(cardinality(string_to_array(writes, E'\\n'))) as writes
    from threadloom.checkpoint_writes where thread_id = ${sql.threadId} group by checkpoint_ns, checkpoint_id
  ) w using (checkpoint_ns, checkpoint_id)
  where c.thread_id = ${sql.threadId}`,
);

/** In a dry run the tables may be missing. */
const UNDEFINED_TABLE = "42P01";

export const createTarget = (database: Database, checkpoints: CheckpointStorage): Target => ({
  async existing(key) {
    let record: Existing["record"];
    try {
      [record] = await FIND.query<NonNullable<Existing["record"]>>(database, { threadId: key });
    } catch (error) {
      if (sqlState(error) === UNDEFINED_TABLE) return { record: undefined, checkpoints: new Map() };
      throw error;
    }
    const rows = await LIST_CHECKPOINTS.query<{
      checkpoint_ns: string;
      checkpoint_id: string;
      writes: number;
    }>(database, { threadId: key });
    return {
      record,
      checkpoints: new Map(
        rows.map((row) => [checkpointKey(row.checkpoint_ns, row.checkpoint_id), row.writes]),
      ),
    };
  },

  async finish({ key, sourceId, graphId, firstTime, lastTime }) {
    const interrupts = interruptsOf(await checkpoints.readHead(key));
    const metadata: JsonObject = {
      [IMPORTED_ID]: sourceId,
      ...(graphId === undefined ? {} : graphOf(graphId)),
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

  async assign(key, graphId) {
    await mergeImported(database, key, graphOf(graphId));
  },
});

const graphOf = (graphId: string) => ({ graph_id: graphId, assistant_id: systemAssistantId(graphId) });

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
