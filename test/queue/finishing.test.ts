import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunOutcome } from "../../src/queue/attempts.ts";
import { createRunEnds } from "../../src/queue/ending.ts";
import { aRunningRun, openStorage, type OpenStorage } from "../checkpoints/open-storage.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

const SUCCESS: RunOutcome = { status: "success", error: null, threadStatus: "idle", interrupts: "{}" };

const makeBusy = (threadId: string) =>
  opened.database.query("update threadloom.threads set unfinished_runs = 1 where thread_id = $1", [threadId]);

test("a run doesn't end as success on a checkpoint that a crash of the database has taken", async () => {
  const { database } = opened;
  const ends = createRunEnds(database, { checkpoints: opened.storage });
  const run = await aRunningRun(database);
  await makeBusy(run.threadId);
  const lastCheckpoint = { checkpointNs: "", checkpointId: randomUUID() };
  const aCheckpoint = (threadId: string, namespace: string, checkpointId: string) =>
    database.query(
      `insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, metadata, shape, record, segments, contents)
       values ($1, $2, $3, '{}', $3, '', '{}', '{}')`,
      [threadId, namespace, checkpointId],
    );
  // What is there is of a subgraph, of another thread, or from before.
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

test("a run that has stored nothing ends without asking for a checkpoint", async () => {
  const { database } = opened;
  const ends = createRunEnds(database, { checkpoints: opened.storage });
  const run = await aRunningRun(database);
  await makeBusy(run.threadId);
  expect(await ends.finish(run, SUCCESS)).toEqual({ waiting: 0 });
});
