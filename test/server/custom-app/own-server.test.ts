import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";

/** The SDK's `new Client()` without an address, in `http.app` and in graphs, reaches the server in which it runs. */

const config = (name: string) => fileURLToPath(new URL(`own-server/${name}.json`, import.meta.url));
const start = async (name: string, options: Parameters<typeof startTestServer>[0] = {}) => {
  const server = await startTestServer({ graphConfigFile: config(name), ...options });
  onTestFinished(() => server.close());
  return server;
};

const threadsOf = async (api: Api): Promise<string[]> =>
  (await api.post<{ thread_id: string }[]>("/threads/search", { limit: 1_000 })).body.map(
    ({ thread_id }) => thread_id,
  );
const run = { assistant_id: "make", input: {} };

test("from http.app, with a client made early and one made late", async () => {
  const server = await start("langgraph");
  for (const path of ["early", "late"]) {
    const made = await fetch(`${server.url}/${path}`);
    const { thread_id } = (await made.json()) as { thread_id: string };
    expect(await threadsOf(apiOf(server))).toContain(thread_id);
  }
});

test.each([0, 1])("from a node, with %d graph processes", async (graphProcesses) => {
  const api = apiOf(await start("langgraph", { graphProcesses }));
  const { body } = await api.post<{ made: string[] }>("/runs/wait", run);
  expect(await threadsOf(api)).toEqual(expect.arrayContaining(body.made));
  expect(body.made).toHaveLength(2);
});

test("never another server of the process", async () => {
  const servers = [await start("langgraph"), await start("langgraph")];
  const { body } = await apiOf(servers[0]!).post("/runs/wait", run);
  expect(JSON.stringify(body)).toContain("Several servers listen in this process");
  for (const server of servers) expect(await threadsOf(apiOf(server))).toEqual([]);
});

test("such a client has to authenticate like any other; below a prefix, too", async () => {
  const { origin } = new URL((await start("langgraph-users")).url);
  const ask = async (path: string, headers = {}): Promise<unknown> =>
    await (await fetch(`${origin}/agents/${path}`, { headers })).json();
  expect(await ask("early")).toEqual({ refused: 401 });
  expect(await ask("late")).toEqual({ refused: 401 });
  expect(await ask("late", { authorization: "Bearer alice-token" })).toEqual({
    thread_id: expect.any(String) as string,
  });
});
