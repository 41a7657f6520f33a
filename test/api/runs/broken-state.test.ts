import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, saying, type Api, type Refusal, type Result } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";

/** A thread with a part missing in the database, which is no graph's fault; callers of the API must not read the details. */

let server: TestServer;
let other: TestServer;
let threadId: string;
let api: Api;
beforeAll(async () => {
  server = await startTestServer();
  threadId = await apiOf(server).aThread();
  await apiOf(server).aFinishedRun(threadId, {
    assistant_id: "counter",
    input: saying("hello ".repeat(200)),
  });
  await query(server, "delete from threadloom.checkpoint_contents where thread_id = $1", [threadId]);
  // This server has nothing of the missing part in memory.
  other = await startTestServer({ connectionString: server.connectionString });
  api = apiOf(other);
});
afterAll(async () => {
  await other.close();
  await server.close();
});

const logged = (): string[] => other.lines.filter((line) => line.includes("StateStorageError"));

test("a run on it fails with a neutral message, and the log names the missing part", async () => {
  const { body } = await api.post<Result>(`/threads/${threadId}/runs/wait`, {
    assistant_id: "counter",
    input: saying("more"),
  });
  expect(body.__error__).toEqual({
    error: "StateStorageError",
    message: "The state of the thread could not be read or stored; the server's log says why.",
  });
  expect(logged().join()).toMatch(/The stored content [-0-9a-f]+ is missing/);
});

test.each([
  ["reading", "GET", undefined],
  ["updating", "POST", { values: { count: 1 } }],
])("%s its state causes a server error, not a refusal of the request", async (_, method, body) => {
  const before = logged().length;
  const path = `/threads/${threadId}/state`;
  const answer = await (method === "GET" ? api.get<Refusal>(path) : api.post<Refusal>(path, body));
  expect([answer.status, answer.body.detail]).toEqual([
    500,
    "The server could not answer this request; its log says why.",
  ]);
  expect(logged().length).toBeGreaterThan(before);
});
