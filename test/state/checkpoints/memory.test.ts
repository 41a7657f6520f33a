import { uuid6, type Checkpoint } from "@langchain/langgraph-checkpoint";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it } from "vitest";
import type { AttemptSaver } from "../../../src/state/checkpoints/types.ts";
import { eventually } from "../../helpers/conditions.ts";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";

const MEGABYTE = 1_000_000;

let opened: OpenStorage | undefined;
afterEach(async () => {
  await opened?.close();
  opened = undefined;
});

/** Puts a checkpoint with a unique text. */
const put = async (
  saver: AttemptSaver,
  threadId: string,
  step: number,
  characters: number,
): Promise<void> => {
  const checkpoint: Checkpoint = {
    v: 4,
    id: uuid6(step),
    ts: new Date().toISOString(),
    channel_values: { text: `${step} `.padEnd(characters, "x") },
    channel_versions: { text: step + 1 },
    versions_seen: {},
  };
  const metadata = { source: "loop" as const, step, parents: {} };
  await saver.put(
    { configurable: { thread_id: threadId, checkpoint_ns: "" } },
    checkpoint,
    metadata,
    checkpoint.channel_versions,
  );
};

const heapBytes = (): number => {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
};

describe("the memory of a run that creates checkpoints endlessly", () => {
  it.each([
    [1_000, 100],
    [20, MEGABYTE],
  ])("holds only a few of them while the database is slow (%d of %d characters)", async (count, size) => {
    opened = await openStorage();
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    let accepted = 0;
    let writing: Promise<void> | undefined;
    await opened.database.transaction(async (transaction) => {
      await transaction.query("select from threadloom.runs where run_id = $1 for update", [run.runId]);
      writing = (async () => {
        for (let step = 0; step < count; step += 1) {
          await put(saver, run.threadId, step, size);
          accepted += 1;
        }
      })();
      let before = -1;
      await eventually("the run waits", () => {
        const waits = accepted === before;
        before = accepted;
        return waits;
      });
      expect(accepted).toBeGreaterThan(0);
      expect(accepted).toBeLessThan(count / 2);
    });
    await writing;
    await saver.flush();
    const rows = await opened.database.query("select from threadloom.checkpoints where thread_id = $1", [
      run.threadId,
    ]);
    expect(rows).toHaveLength(count);
  });

  it("keeps stored checkpoints only within the limit of the cache", async () => {
    opened = await openStorage(4 * MEGABYTE);
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    const before = heapBytes();
    for (let step = 0; step < 60; step += 1) await put(saver, run.threadId, step, MEGABYTE);
    await saver.flush();
    expect(heapBytes() - before).toBeLessThan(20 * MEGABYTE);
  });
});
