import { randomUUID } from "node:crypto";
import { uuid6, type Checkpoint } from "@langchain/langgraph-checkpoint";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import type { ReadBudget } from "../../../src/platform/lib/large-answers.ts";
import { collected } from "../../helpers/collected.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/** Two databases as the parts of a distributed one. Its statements ask the parts of their threads, or both. */

const logger = pino({ level: "silent" });
const MEGABYTE = 1_000_000;
let fresh: FreshDatabase[];
let parts: Database[];
let read: { characters: number };
let database: Database;

const THREADS: string[] = Array.from({ length: 8 }, () => randomUUID());
/** The first and the second thread are in different parts, and the last four in one. */
const partOf = (threadId: string): number => [0, 1, 0, 1, 0, 0, 0, 0][THREADS.indexOf(threadId)]!;

beforeAll(async () => {
  fresh = [await freshDatabase(), await freshDatabase()];
  parts = fresh.map(({ connectionString }) => openTestDatabase(connectionString));
  database = {
    ...parts[0]!,
    parts,
    partOf,
    async query<Row>(
      text: string,
      values?: unknown[],
      { threads }: { threads?: string | readonly string[] } = {},
    ) {
      const asked = threads === undefined ? [0, 1] : [...new Set([threads].flat().map(partOf))].sort();
      const rows = await Promise.all(asked.map((part) => parts[part]!.query<Row>(text, values)));
      read.characters += JSON.stringify(rows).length;
      return rows.flat();
    },
  };
  for (const [index, threadId] of THREADS.entries()) {
    const storage = createCheckpointStorage({ database: parts[partOf(threadId)]!, logger });
    const checkpoint: Checkpoint = {
      v: 4,
      id: uuid6(index + 1),
      ts: new Date(Date.UTC(2026, 0, 1 + index)).toISOString(),
      channel_values: { big: `${index} `.padEnd(MEGABYTE, "x") },
      channel_versions: { big: 1 },
      versions_seen: {},
    };
    const config = { configurable: { thread_id: threadId, checkpoint_ns: "" } };
    await storage.saver.put(config, checkpoint, { source: "loop", step: 1, parents: {} }, { big: 1 });
  }
});
afterAll(async () => {
  await Promise.all(parts.map((part) => part.close()));
  await Promise.all(fresh.map((one) => one.drop()));
});

const open = () => {
  read = { characters: 0 };
  return createCheckpointStorage({ database, logger });
};
const bigOf = (values: Record<string, unknown>): string => String(values["big"]).slice(0, 1);

test("the newest states of threads in both parts come in the order of their ids", async () => {
  for (const ids of [THREADS, THREADS.toReversed()]) {
    const heads = await collected(open().readHeads(ids));
    expect(heads.map(({ threadId }) => threadId)).toEqual(ids);
  }
});

test("only as many of their bytes are read as the consumer takes", async () => {
  const heads = open().readHeads(THREADS);
  expect((await heads.next()).value).toMatchObject({ threadId: THREADS[0] });
  expect(read.characters).toBeLessThan(2 * MEGABYTE);
  expect(await collected(heads)).toHaveLength(THREADS.length - 1);
  expect(read.characters).toBeLessThan((THREADS.length + 1) * MEGABYTE);
});

test("a state that is larger than the share of its part is read after a reservation", async () => {
  const reserved: number[] = [];
  const budget: ReadBudget = { reserve: async (bytes) => void reserved.push(bytes) };
  const heads = await collected(open().readHeads(THREADS, { budget }));
  expect(heads.map(({ threadId }) => threadId)).toEqual(THREADS);
  expect(reserved[0]).toBeGreaterThan(MEGABYTE / 2);
});

test("a list without a thread is in one order, and has as many checkpoints as were asked for", async () => {
  const { saver } = open();
  const listed = async (limit: number) =>
    (await collected(saver.list({ configurable: {} }, { limit }))).map(({ checkpoint }) =>
      bigOf(checkpoint.channel_values),
    );
  expect(await listed(3)).toEqual(["7", "6", "5"]);
  expect(await listed(10)).toEqual(["7", "6", "5", "4", "3", "2", "1", "0"]);
});
