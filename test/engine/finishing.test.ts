import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createQueue, type RunOutcome } from "../../src/engine/queue.ts";
import { aRunningRun, openStorage, type OpenStorage } from "../checkpoints/open-storage.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

const SUCCESS: RunOutcome = { status: "success", error: null, threadStatus: "idle", interrupts: "{}" };

test("a run doesn't end as success on a checkpoint that a crash of the database has taken", async () => {
  const { database } = opened;
  const queue = createQueue(database, { maxAttempts: 3, graphIds: [] });
  const run = await aRunningRun(database);
  await database.query("update threadloom.threads set unfinished_runs = 1 where thread_id = $1", [
    run.threadId,
  ]);
  const lastCheckpoint = { checkpointNs: "", checkpointId: randomUUID() };
  expect(await queue.finish(run.threadId, run, SUCCESS, { lastCheckpoint })).toBeUndefined();
  const [row] = await database.query<{ status: string }>(
    "select status from threadloom.runs where run_id = $1",
    [run.runId],
  );
  expect(row?.status).toBe("running");
  expect(await queue.finish(run.threadId, run, SUCCESS)).toEqual({ waiting: 0 });
});
