import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { UsageAnswer } from "../../../src/api/usage/schemas.ts";
import type { Api } from "../../helpers/api.ts";
import { onServer } from "../../helpers/servers.ts";

const GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
const INPUT = { count: 1, messages: [] };

let api: Api;
let url: string;
onServer({ graphConfigFile: GRAPHS }, (opened) => {
  ({ api } = opened);
  ({ url } = opened.server);
});

const usage = async (query: string): Promise<UsageAnswer> =>
  (await api.get<UsageAnswer>(`/usage?${query}`)).body;

test("tokens are summed by model and graph, and the sums stay when the thread is deleted", async () => {
  const threadId = await api.aThread();
  for (let run = 0; run < 2; run += 1)
    await api.aFinishedRun(threadId, { assistant_id: "tools", input: INPUT });
  await api.remove(`/threads/${threadId}`);
  const { rows, currency, is_complete } = await usage(`group_by=model,graph_id&thread_id=${threadId}`);
  expect({ currency, is_complete }).toEqual({ currency: "EUR", is_complete: true });
  // The second run's state has results of tools, so that the model calls none.
  expect(rows).toMatchObject([
    {
      model: "calling-2026",
      graph_id: "tools",
      runs: 2,
      calls: 3,
      input_tokens: 33,
      output_tokens: 21,
      cost: null,
    },
    { model: "plain-2026", graph_id: "tools", runs: 1, calls: 1, cache_read_tokens: 5 },
  ]);
});

test("a price applies to dated versions of its model; cached input has its own", async () => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, { assistant_id: "streams", input: INPUT });
  const { rows } = await usage(`group_by=day&thread_id=${threadId}`);
  // Two calls, each with 11 input tokens, 5 of them cached, and 7 output tokens.
  expect(rows).toMatchObject([{ calls: 2, cost: (2 * (6 * 1_000 + 5 * 100 + 7 * 2_000)) / 1_000_000 }]);
  expect(rows[0]?.day).toBe(new Date().toISOString().slice(0, 10));
});

test("the answer can be CSV", async () => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, { assistant_id: "streams", input: INPUT });
  const answer = await fetch(`${url}/usage?group_by=model&thread_id=${threadId}&format=csv`);
  expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(await answer.text()).toBe(
    "model,runs,calls,input_tokens,output_tokens,cache_read_tokens,cache_creation_tokens,reasoning_tokens,cost\r\n" +
      "streaming-2026,1,2,22,14,10,2,4,0.041\r\n",
  );
});

test.each([
  ["group_by=constructor", "group_by"],
  ["group_by=day,day", "group_by"],
  ["from=2026-13-01", "from"],
  ["from=0000-01-01", "from"],
  ["to=0001-01-01", "to"],
  ["model=%00", "model"],
  ["graph_id=a%00b", "graph_id"],
  ["from=2026-02-02&to=2026-02-01", "'from' is after 'to'."],
])("'%s' is refused", async (query, named) => {
  const { status, text } = await api.get(`/usage?${query}`);
  expect(status).toBe(422);
  expect(text).toContain(named);
});

test("the last day may be any day", async () => {
  expect((await api.get("/usage?from=1970-01-01&to=9999-12-31&model=constructor")).status).toBe(200);
});

test("a run without models leaves no usage", async () => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, { assistant_id: "twoSteps", input: INPUT });
  expect((await usage(`thread_id=${threadId}`)).rows).toEqual([]);
});
