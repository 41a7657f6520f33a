import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunOutcome } from "../../../src/engine/queue/attempts.ts";
import { createRunEnds } from "../../../src/engine/queue/ending.ts";
import { aRunningRun, openStorage, type OpenStorage } from "../../state/checkpoints/open-storage.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

const SUCCESS: RunOutcome = { status: "success", error: null, threadStatus: "idle", interrupts: "{}" };

const makeBusy = (threadId: string) =>
  opened.database.query("update threadloom.threads set unfinished_runs = 1 where thread_id = $1", [threadId]);

test("a run doesn't end as success on a checkpoint that a crash of the database removed", async () => {
  const { database } = opened;
  const ends = createRunEnds(database, opened.storage);
  const run = await aRunningRun(database);
  await makeBusy(run.threadId);
  const lastCheckpoint = { checkpointNs: "", checkpointId: randomUUID() };
  const aCheckpoint = (threadId: string, namespace: string, checkpointId: string) =>
    database.query(
      `insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, metadata, names, record, seq)
       values ($1, $2, $3, '{}', $3, '',
         1 + (select count(*) from threadloom.checkpoints where thread_id = $1))`,
      [threadId, namespace, checkpointId],
    );
  // The existing checkpoints are of a subgraph, of another thread, or older.
  await aCheckpoint(run.threadId, "subgraph", lastCheckpoint.checkpointId);
  await aCheckpoint(randomUUID(), "", lastCheckpoint.checkpointId);
  await aCheckpoint(run.threadId, "", randomUUID());
  expect(await ends.finish(run, SUCCESS, lastCheckpoint)).toBeUndefined();
  const [row] = await database.query<{ status: string }>(
    "select status from threadloom.runs where run_id = $1",
    [run.runId],
  );
  expect(row?.status).toBe("running");
  await aCheckpoint(run.threadId, "", lastCheckpoint.checkpointId);
  expect(await ends.finish(run, SUCCESS, lastCheckpoint)).toEqual({ waiting: 0 });
});

test("a run without a stored checkpoint ends without checking one", async () => {
  const { database } = opened;
  const ends = createRunEnds(database, opened.storage);
  const run = await aRunningRun(database);
  await makeBusy(run.threadId);
  expect(await ends.finish(run, SUCCESS)).toEqual({ waiting: 0 });
});
