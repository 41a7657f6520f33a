import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { newId } from "../../src/platform/lib/ids.ts";
import { apiOf, saying, type Api, type Result } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { query } from "../helpers/query.ts";

/** A server whose clock is one minute behind the server that executed the earlier runs. Only the database's clock may decide. */

const BEHIND_MS = 60_000;

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer();
  api = apiOf(server);
});
afterEach(() => void vi.useRealTimers());
afterAll(() => server.close());

const setClockBack = (): void => {
  const behind = Date.now() - BEHIND_MS;
  vi.useFakeTimers({ toFake: ["Date"], now: behind });
};
const turn = async (threadId: string, text: string): Promise<void> => {
  const { status, body } = await api.post<Result>(`/threads/${threadId}/runs/wait`, {
    assistant_id: "agent",
    input: saying(text),
  });
  expect(status).toBe(200);
  expect(body.__error__).toBeUndefined();
};
const said = async (threadId: string): Promise<unknown[]> =>
  ((await api.state(threadId)).values.messages ?? [])
    .filter(({ type }) => type === "human")
    .map(({ content }) => content);

test("executes the next run of a thread and stores its effect", async () => {
  const threadId = await api.aThread();
  await turn(threadId, "one");
  setClockBack();
  await turn(threadId, "two");
  await turn(threadId, "three");
  expect(await said(threadId)).toEqual(["one", "two", "three"]);
});

test("takes over a run of a dead server, and the run succeeds", async () => {
  const threadId = await api.aThread();
  await turn(threadId, "one");
  const run = await api.aRun(threadId, { assistant_id: "agent", input: saying("two"), after_seconds: 3_600 });
  setClockBack();
  await query(
    server,
    `update threadloom.runs set status = 'running', attempt = 1, worker_id = $2, available_at = now(),
       started_at = now(), lease_until = now() - interval '1 minute' where run_id = $1`,
    [run.run_id, newId()],
  );
  await api.untilRunIs(threadId, run.run_id, "success");
  expect(await said(threadId)).toEqual(["one", "two"]);
});

test("starts no run before its time by the clock of the database", async () => {
  const threadId = await api.aThread();
  setClockBack();
  const later = await api.aRun(threadId, {
    assistant_id: "agent",
    input: saying("later"),
    after_seconds: 3_600,
  });
  const [row] = await query<{ ahead: number }>(
    server,
    "select extract(epoch from available_at - now())::float8 as ahead from threadloom.runs where run_id = $1",
    [later.run_id],
  );
  // The interval would be one minute shorter if the server's clock decided.
  expect(row?.ahead).toBeGreaterThan(3_600 - BEHIND_MS / 1_000 / 2);
  expect(row?.ahead).toBeLessThanOrEqual(3_600);
  expect(later.status).toBe("pending");
});
