import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, saying, textsOf, type Api, type ThreadRecord } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { fill, OWNER_OF_MANY, type Filled } from "./fill.ts";

const SIZE = { threads: 1_000, owners: 20, assistants: 10, crons: 10, storeItems: 50, longTurns: 3 };

let server: TestServer;
let api: Api;
let filled: Filled;
beforeAll(async () => {
  server = await startTestServer();
  api = apiOf(server);
  const makeThread = async (turns: number): Promise<string> => {
    const id = await api.aThread();
    for (let turn = 0; turn < turns; turn += 1)
      await api.aFinishedRun(id, { assistant_id: "two-step", input: saying("hello") });
    return id;
  };
  const client = new pg.Client({ connectionString: server.connectionString });
  await client.connect();
  try {
    filled = await fill(client, makeThread, SIZE, () => undefined);
  } finally {
    await client.end();
  }
});
afterAll(() => server.close());

const counted = async (path: string, filter: object = {}): Promise<number> =>
  (await api.post<number>(`${path}/count`, filter)).body;

test("the benchmark's copied threads have the states, histories and runs of real threads", async () => {
  for (const id of filled.threadIds.slice(0, 15)) {
    const [state, history, runs] = [await api.state(id), await api.history(id), await api.runs(id)];
    const turns = runs.length;
    const turn = ["hello", "first", "second"];
    expect(textsOf(state.values.messages)).toEqual(Array.from({ length: turns }, () => turn).flat());
    expect(history.length).toBe(4 * turns);
    expect(new Set(runs.map(({ thread_id }) => thread_id))).toEqual(new Set([id]));
  }
});

test("the benchmark's threads have five checkpoints each on average, and owners, statuses and dates like real ones", async () => {
  expect(filled.checkpoints / SIZE.threads).toBeGreaterThan(4);
  expect(filled.checkpoints / SIZE.threads).toBeLessThan(6);
  expect(await counted("/threads", { metadata: { owner: OWNER_OF_MANY } })).toBe(SIZE.threads / 5);
  expect(await counted("/threads", { metadata: { owner: "owner-7" } })).toBeGreaterThan(0);
  for (const status of ["interrupted", "error"])
    expect(await counted("/threads", { status })).toBeGreaterThan(0);
  const { body } = await api.post<(ThreadRecord & { created_at: string })[]>("/threads/search", {
    limit: 1,
    sort_order: "asc",
  });
  const aMonthAgo = new Date(Date.now() - 30 * 86_400_000).toISOString();
  expect((body[0]?.created_at ?? "") < aMonthAgo).toBe(true);
  expect(await counted("/runs/crons")).toBe(SIZE.crons);
  expect(await counted("/assistants", { metadata: { created_by: "user" } })).toBe(SIZE.assistants);
});
