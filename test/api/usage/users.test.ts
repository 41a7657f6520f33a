import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { beforeAll, expect, test } from "vitest";
import type { Trace } from "../../../src/api/runs/traces/schemas.ts";
import type { UsageAnswer } from "../../../src/api/usage/schemas.ts";
import { onServer } from "../../helpers/servers.ts";

/* Users of a project's `Auth` see their own traces and usage. An API key sees all. */

const GRAPHS = fileURLToPath(new URL("./users.json", import.meta.url));
const KEY = "canary-0b5d-operators";
const OPERATOR = { "x-api-key": KEY };
const CALLS_OF_RUN = 3;
const NAMES = ["alice", "bob"] as const;
type Name = (typeof NAMES)[number];

let url: string;
onServer({ graphConfigFile: GRAPHS, apiKeys: [KEY] }, (opened) => ({ url } = opened.server));

const headersOf = (name: string) => ({ authorization: `Bearer ${name}-token` });
const get = async (path: string, headers: Record<string, string>) => {
  const answer = await fetch(`${url}${path}`, { headers });
  const text = await answer.text();
  return { status: answer.status, text };
};
const usage = async (query: string, headers: Record<string, string>): Promise<UsageAnswer["rows"]> =>
  (JSON.parse((await get(`/usage?${query}`, headers)).text) as UsageAnswer).rows;

const threads = {} as Record<Name, string>;
const traces = {} as Record<Name, string>;
beforeAll(async () => {
  for (const name of NAMES) {
    const client = new Client({ apiUrl: url, apiKey: null, defaultHeaders: headersOf(name) });
    const { thread_id: threadId } = await client.threads.create();
    await client.runs.wait(threadId, "tools", { input: { messages: [] } });
    const [run] = await client.runs.list(threadId);
    threads[name] = threadId;
    traces[name] = `/threads/${threadId}/runs/${run!.run_id}/trace`;
  }
});

test("a user sees the usage of the own runs only, by any group", async () => {
  for (const name of NAMES) {
    const own = await usage("group_by=thread_id,caller", headersOf(name));
    expect(own).toMatchObject([{ thread_id: threads[name], runs: 1, calls: CALLS_OF_RUN }]);
  }
});

test("no filter shows a user the usage of another user", async () => {
  const [{ caller } = {}] = await usage("group_by=caller", headersOf("alice"));
  for (const query of [`caller=${caller}`, `thread_id=${threads.alice}`])
    expect(await usage(`group_by=model&${query}`, headersOf("bob"))).toEqual([]);
  const { text } = await get("/usage?group_by=caller,thread_id&format=csv", headersOf("bob"));
  expect(text).toContain(threads.bob);
  expect(text).not.toContain(threads.alice);
  expect(text).not.toContain(caller);
});

test("a user finds the traces of the own runs only", async () => {
  const { status, text } = await get(traces.alice, headersOf("alice"));
  expect(status).toBe(200);
  expect((JSON.parse(text) as Trace).attempts).toHaveLength(1);
  expect((await get(traces.alice, headersOf("bob"))).status).toBe(404);
  expect((await get(traces.bob, headersOf("alice"))).status).toBe(404);
});

test("an API key sees the traces and the usage of all users", async () => {
  for (const path of Object.values(traces)) expect((await get(path, OPERATOR)).status).toBe(200);
  const all = await usage("group_by=thread_id", OPERATOR);
  expect(all.map(({ thread_id: id }) => id).sort()).toEqual(Object.values(threads).sort());
  const byCaller = await usage("group_by=caller", OPERATOR);
  expect(byCaller.map(({ caller }) => caller)).toEqual([
    expect.stringMatching(/^user:/),
    expect.stringMatching(/^user:/),
  ]);
});

test("a user whom the handler refuses sees no usage", async () => {
  expect((await get("/usage", { authorization: "Bearer plain" })).status).toBe(403);
  expect((await get("/usage", {})).status).toBe(401);
});
