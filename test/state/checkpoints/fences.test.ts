import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { isHeld, type Fence } from "../../../src/state/checkpoints/fences.ts";
import { writeBatch, type Batch } from "../../../src/state/checkpoints/write.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";

let opened: OpenStorage;
let database: Database;
beforeAll(async () => {
  opened = await openStorage();
  ({ database } = opened);
});
afterAll(() => opened.close());
beforeEach(() => database.query("delete from threadloom.threads"));

const batchOf = (...checkpointIds: string[]): Batch => ({
  contents: [],
  writes: [],
  checkpoints: checkpointIds.map((checkpointId) => ({
    checkpointNs: "",
    checkpointId,
    parentId: null,
    runId: null,
    metadata: "{}",
    metadataText: "",
    names: checkpointId,
    record: "{}",
    deltaChannels: [],
    writes: "",
  })),
});
const IDLE_THREAD: Fence = { kind: "idle-thread" };
const unchangedSince = (threadVersion: string): Fence => ({ kind: "unchanged-thread", threadVersion });
const write = (threadId: string, fence: Fence, batch = batchOf(randomUUID())) =>
  writeBatch(database, { ...batch, threadId, fence, asynchronous: false, last: undefined });

const aThread = async (unfinishedRuns = 0): Promise<string> => {
  const threadId = randomUUID();
  await database.query("insert into threadloom.threads (thread_id, unfinished_runs) values ($1, $2)", [
    threadId,
    unfinishedRuns,
  ]);
  return threadId;
};
interface State {
  version: string;
  changed: string;
}
const stateOf = async (threadId: string): Promise<State> => {
  const [row] = await database.query<State>(
    "select version::text as version, state_updated_at::text as changed from threadloom.threads where thread_id = $1",
    [threadId],
  );
  if (row === undefined) throw new Error("No thread.");
  return row;
};
const stored = async (threadId: string): Promise<number> =>
  (await database.query("select 1 from threadloom.checkpoints where thread_id = $1", [threadId])).length;

describe("a write that requires an idle thread", () => {
  test("is stored, reports that the state has changed, and touches no other thread", async () => {
    const [threadId, other] = [await aThread(), await aThread()];
    const [before, otherBefore] = [await stateOf(threadId), await stateOf(other)];
    expect(await write(threadId, IDLE_THREAD)).toBe(true);
    expect(await stored(threadId)).toBe(1);
    expect((await stateOf(threadId)).changed).not.toBe(before.changed);
    expect(await stateOf(other)).toEqual(otherBefore);
  });

  test.each([
    ["a run is in progress or waits", () => aThread(1)],
    ["the thread is gone", async () => randomUUID()],
  ])("stores nothing where %s, although another thread is idle", async (_, thread) => {
    const [threadId] = [await thread(), await aThread()];
    expect(await write(threadId, IDLE_THREAD)).toBe(false);
    expect(await stored(threadId)).toBe(0);
  });
});

describe("a write on a state that was read before", () => {
  test("is stored while the thread is unchanged, also a second one after the first", async () => {
    const [threadId, other] = [await aThread(), await aThread()];
    const [before, otherBefore] = [await stateOf(threadId), await stateOf(other)];
    const fence = unchangedSince(before.version);
    expect(await write(threadId, fence)).toBe(true);
    expect(await write(threadId, fence)).toBe(true);
    expect(await stored(threadId)).toBe(2);
    expect((await stateOf(threadId)).changed).not.toBe(before.changed);
    expect(await stateOf(other)).toEqual(otherBefore);
  });

  test("stores nothing once another writer has changed the thread", async () => {
    const threadId = await aThread();
    const { version } = await stateOf(threadId);
    await database.query("update threadloom.threads set updated_at = now() where thread_id = $1", [threadId]);
    // The same checkpoint id in another thread is a different checkpoint.
    const batch = batchOf(randomUUID());
    await write(await aThread(), IDLE_THREAD, batch);
    await write(threadId, IDLE_THREAD);
    expect(await write(threadId, unchangedSince(version), batch)).toBe(false);
    expect(await stored(threadId)).toBe(1);
  });

  test("stores nothing while a run is running or waits", async () => {
    const threadId = await aThread(1);
    await aThread();
    expect(await write(threadId, unchangedSince((await stateOf(threadId)).version))).toBe(false);
    expect(await stored(threadId)).toBe(0);
  });

  test("learns that it was stored if only the answer was lost", async () => {
    const [threadId, other] = [await aThread(), await aThread()];
    const [{ version }, otherBefore] = [await stateOf(threadId), await stateOf(other)];
    const batch = batchOf(randomUUID());
    expect(await write(threadId, unchangedSince(version), batch)).toBe(true);
    expect(await write(threadId, unchangedSince(version), batch)).toBe(true);
    expect(await stored(threadId)).toBe(1);
    expect(await stateOf(other)).toEqual(otherBefore);
  });
});

test("an attempt owns its run until another one follows, or until it has ended", async () => {
  const run = await aRunningRun(database);
  await aRunningRun(database);
  expect(await isHeld(database, run)).toBe(true);
  expect(await isHeld(database, { ...run, runId: randomUUID() })).toBe(false);
  expect(await isHeld(database, { ...run, attempt: 2 })).toBe(false);
  await database.query("update threadloom.runs set status = 'success' where run_id = $1", [run.runId]);
  expect(await isHeld(database, run)).toBe(false);
});
