import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createRunRepository } from "../../../src/api/runs/repository.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";
import { openQueue, type OpenQueue } from "../../engine/queue/open-queue.ts";

/** Runs whose input has megabytes: the server reads only as much as it has room for. */

const MEGABYTE = 1_000_000;

let opened: OpenQueue;
let read: { characters: number; statements: number };
let database: Database;
beforeAll(async () => {
  opened = await openQueue();
  database = {
    ...opened.database,
    async query<Row>(text: string, values?: unknown[]) {
      const rows = await opened.database.query<Row>(text, values);
      read.statements += 1;
      read.characters += JSON.stringify(rows).length;
      return rows;
    },
  };
});
afterAll(() => opened.close());
beforeEach(() => (read = { characters: 0, statements: 0 }));

const aRunOf = async (characters: number): Promise<{ threadId: string; runId: string }> => {
  const { threadId, runId } = await opened.aRun({ status: "success" });
  await opened.database.query("update threadloom.runs set kwargs = $2 where run_id = $1", [
    runId,
    JSON.stringify({ input: "x".repeat(characters) }),
  ]);
  return { threadId, runId };
};

test("the server reserves room before it reads a large input; a small one needs one statement", async () => {
  const repository = createRunRepository(database);
  const asked: number[] = [];
  const reserve = (bytes: number): Promise<void> => {
    asked.push(bytes);
    expect(read.characters).toBeLessThan(MEGABYTE / 10);
    return Promise.resolve();
  };
  const small = await repository.findWithBudget(EVERY_THREAD, await aRunOf(10), { reserve });
  expect(small?.kwargs).toEqual({ input: "x".repeat(10) });
  expect([asked.length, read.statements]).toEqual([0, 1]);
  const large = await repository.findWithBudget(EVERY_THREAD, await aRunOf(2 * MEGABYTE), { reserve });
  expect(String(large?.kwargs["input"])).toHaveLength(2 * MEGABYTE);
  expect([asked.length, read.statements]).toEqual([1, 3]);
  expect(asked[0]).toBeGreaterThan(2 * MEGABYTE);
});

test("nothing large is read for a caller without room", async () => {
  const run = await aRunOf(2 * MEGABYTE);
  const full = { reserve: () => Promise.reject(new Error("full")) };
  await expect(createRunRepository(database).findWithBudget(EVERY_THREAD, run, full)).rejects.toThrow("full");
  expect(read.characters).toBeLessThan(MEGABYTE / 10);
});
