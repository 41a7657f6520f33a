import { pino } from "pino";
import { randomUUID } from "node:crypto";
import { createCheckpointStorage, type CheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { openDatabase } from "../../../src/platform/database/database.ts";
import type { ObjectStore } from "../../../src/platform/database/object-store.ts";
import { TEST_ENCRYPTION } from "../../helpers/encryption.ts";
import { freshDatabase } from "../../helpers/database.ts";

const logger = pino({ level: "silent" });

export interface OpenStorage {
  database: Database;
  storage: CheckpointStorage;
  /** The view of another process, with an empty cache. */
  anotherProcess(): CheckpointStorage;
  close(): Promise<void>;
}

/** The room on a database of its own. */
export const openStorage = async (cacheBytes?: number, objects?: ObjectStore): Promise<OpenStorage> => {
  const fresh = await freshDatabase();
  const database = openDatabase({
    connectionString: fresh.connectionString,
    poolSize: 4,
    applicationName: "test",
    preparedStatements: true,
    encryption: TEST_ENCRYPTION,
    objects,
    logger,
  });
  const anotherProcess = () => createCheckpointStorage({ database, logger, cacheBytes });
  return {
    database,
    storage: anotherProcess(),
    anotherProcess,
    async close() {
      await database.close();
      await fresh.drop();
    },
  };
};

/** A running run on a thread, in the state that an attempt finds. */
export const aRunningRun = async (
  database: Database,
  threadId: string = randomUUID(),
): Promise<{ threadId: string; runId: string; attempt: number }> => {
  const runId = randomUUID();
  await database.query("insert into threadloom.threads (thread_id) values ($1) on conflict do nothing", [
    threadId,
  ]);
  await database.query(
    "update threadloom.runs set status = 'success' where thread_id = $1 and status = 'running'",
    [threadId],
  );
  await database.query(
    `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt)
     values ($1, $2, $1, 'test', 'running', '{}', 'enqueue', 1)`,
    [runId, threadId],
  );
  return { threadId, runId, attempt: 1 };
};
