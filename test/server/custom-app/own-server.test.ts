import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** The SDK's `new Client()` without an address, in `http.app` and in graphs, reaches the server in which it runs. */

const config = (name: string) => fileURLToPath(new URL(`own-server/${name}.json`, import.meta.url));
let servers: TestServer[];
let users: TestServer;
let workers: TestServer;
beforeAll(async () => {
  servers = await Promise.all([1, 2].map(() => startTestServer({ graphConfigFile: config("langgraph") })));
  users = await startTestServer({ graphConfigFile: config("langgraph-users") });
  workers = await startTestServer({ graphConfigFile: config("langgraph"), graphProcesses: 1 });
});
afterAll(() => Promise.all([...servers, users, workers].map((server) => server.close())));

const threadsOf = async (api: Api): Promise<string[]> =>
  (await api.post<{ thread_id: string }[]>("/threads/search", { limit: 1_000 })).body.map(
    ({ thread_id }) => thread_id,
  );

test.each(["early", "late"])("from http.app, of two servers in a process (client made %s)", async (path) => {
  for (const server of servers) {
    const made = await fetch(`${server.url}/${path}`);
    const { thread_id } = (await made.json()) as { thread_id: string };
    for (const other of servers)
      expect((await threadsOf(apiOf(other))).includes(thread_id)).toBe(other === server);
  }
});

test("from a node, of two servers in a process", async () => {
  for (const server of servers) {
    const { body } = await apiOf(server).post<{ made: string[] }>("/runs/wait", {
      assistant_id: "make",
      input: {},
    });
    expect(await threadsOf(apiOf(server))).toEqual(expect.arrayContaining(body.made));
    expect(body.made).toHaveLength(2);
  }
});

test("from a node in a graph process", async () => {
  const { body } = await apiOf(workers).post<{ made: string[] }>("/runs/wait", {
    assistant_id: "make",
    input: {},
  });
  expect(await threadsOf(apiOf(workers))).toEqual(expect.arrayContaining(body.made));
  expect(body.made).toHaveLength(2);
});

test("such a client has to authenticate like any other; below a prefix, too", async () => {
  const { origin } = new URL(users.url);
  const ask = async (path: string, headers = {}): Promise<unknown> =>
    await (await fetch(`${origin}/agents/${path}`, { headers })).json();
  expect(await ask("early")).toEqual({ refused: 401 });
  expect(await ask("late")).toEqual({ refused: 401 });
  expect(await ask("late", { authorization: "Bearer alice-token" })).toEqual({
    thread_id: expect.any(String) as string,
  });
});
