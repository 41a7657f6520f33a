import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { forgetting } from "../../../src/engine/queue/sql/forget.ts";
import { openQueue, type OpenQueue } from "../../engine/queue/open-queue.ts";

let opened: OpenQueue;
let database: Database;
beforeAll(async () => {
  opened = await openQueue();
  ({ database } = opened);
});
afterAll(() => opened.close());
beforeEach(() => database.query("delete from threadloom.threads"));

type Replaced = Partial<Record<"metadata" | "config", object | null>>;
const ASSISTANT = newId();
const OWN = { graph_id: "test", assistant_id: ASSISTANT };
const BEFORE = { graph_id: "before" };

/** A run whose assistant found this on its thread and wrote its own values over it. */
const aRun = async (
  threadId: string,
  createdIn: number,
  { metadata = null, config = null }: Replaced,
  { graph = "test", assistant = ASSISTANT } = {},
): Promise<string> => {
  const { runId } = await opened.aRun({ threadId, status: "pending", createdIn, graph });
  await database.query(
    "update threadloom.runs set assistant_id = $2, replaced_metadata = $3, replaced_config = $4 where run_id = $1",
    [runId, assistant, metadata && JSON.stringify(metadata), config && JSON.stringify(config)],
  );
  return runId;
};
const aThread = async (): Promise<string> => {
  const threadId = await opened.aThread();
  await database.query("update threadloom.threads set metadata = $2, config = $3 where thread_id = $1", [
    threadId,
    JSON.stringify({ ...OWN, mine: 1 }),
    JSON.stringify({ configurable: { now: 1 } }),
  ]);
  return threadId;
};
const CONFIG = { configurable: { before: 1 } };

/** The rows that changed, without the run itself. */
const changedBy = async (threadId: string, runId: string): Promise<Map<string, Record<string, unknown>>> => {
  const before = await opened.rows();
  await database.transaction((transaction) => forgetting(undefined).forgetRun(transaction, threadId, runId));
  const after = await opened.rows();
  return new Map([...after].filter(([id, row]) => JSON.stringify(row) !== JSON.stringify(before.get(id))));
};

test.each<[string, Replaced, object]>([
  [
    "metadata and config",
    { metadata: BEFORE, config: CONFIG },
    { metadata: { ...BEFORE, mine: 1 }, config: CONFIG },
  ],
  ["config alone", { config: CONFIG }, { metadata: { ...OWN, mine: 1 }, config: CONFIG }],
  ["metadata alone", { metadata: BEFORE }, { metadata: { ...BEFORE, mine: 1 } }],
])("a removed run restores %s of its thread, and of no other thread", async (_, replaced, expected) => {
  const [threadId, other] = [await aThread(), await aThread()];
  const runId = await aRun(threadId, -10, replaced);
  await aRun(other, -5, replaced);
  const changed = await changedBy(threadId, runId);
  expect([...changed.keys()]).toEqual([threadId]);
  expect(changed.get(threadId)).toMatchObject(expected);
  expect((await opened.rows()).has(runId)).toBe(false);
});

test("it stays if the request names another thread", async () => {
  const [threadId, other] = [await aThread(), await aThread()];
  const runId = await aRun(threadId, -10, { metadata: BEFORE });
  expect(await changedBy(other, runId)).toEqual(new Map());
  expect((await opened.rows()).has(runId)).toBe(true);
});

const OTHER = { graph_id: "other" };
test.each<[string, Replaced, Replaced, { graph?: string; assistant?: string }, object | undefined]>([
  [
    "that has the removed run's values",
    { metadata: BEFORE, config: CONFIG },
    { metadata: OWN },
    { graph: "second" },
    { replaced_metadata: BEFORE, replaced_config: CONFIG },
  ],
  ["of the same assistant", { metadata: BEFORE }, {}, {}, { replaced_metadata: BEFORE }],
  ["of another graph that replaced nothing", { metadata: BEFORE }, {}, { graph: "second" }, undefined],
  ["of another assistant that replaced nothing", { metadata: BEFORE }, {}, { assistant: newId() }, undefined],
  ["that found something else", { metadata: BEFORE }, { metadata: OTHER }, {}, undefined],
  [
    "that has replaced values of its own",
    { config: CONFIG },
    { metadata: OWN, config: { configurable: { between: 1 } } },
    {},
    { replaced_metadata: OWN, replaced_config: CONFIG },
  ],
  ["that found nothing new", {}, { metadata: OWN }, {}, undefined],
])("the next run %s inherits the replaced values of a removed run, and the thread stays", async (...row) => {
  const [, forgotten, found, who, expected] = row;
  const [other, threadId] = [await aThread(), await aThread()];
  await aRun(other, -8, { metadata: OWN });
  await aRun(threadId, -20, { metadata: OWN });
  const runId = await aRun(threadId, -10, forgotten);
  const next = await aRun(threadId, -5, found, who);
  await aRun(threadId, -1, { metadata: OWN });
  const changed = await changedBy(threadId, runId);
  expect([...changed.keys()]).toEqual(expected === undefined ? [] : [next]);
  if (expected !== undefined) expect(changed.get(next)).toMatchObject(expected);
});
