import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { UsageAnswer } from "../../../src/api/usage/schemas.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

const GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
const INPUT = { count: 1, messages: [] };

let server: TestServer;
let api: Api;
let url: string;
onServer({ graphConfigFile: GRAPHS }, (opened) => {
  ({ server, api } = opened);
  ({ url } = server);
});

const usage = async (asked: string): Promise<UsageAnswer> =>
  (await api.get<UsageAnswer>(`/usage?${asked}`)).body;

/** Calls of one token, each on a thread of its own. */
const calls = (assistantId: string, at: string, number = 1): Promise<unknown> =>
  query(
    server,
    `insert into threadloom.model_usage (thread_id, run_id, attempt, part, model, assistant_id, graph_id, calls,
       input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, reasoning_tokens, created_at)
     select gen_random_uuid(), gen_random_uuid(), 1, 0, 'old', $1, 'tools', 1, 1, 0, 0, 0, 0, $2
     from generate_series(1, $3::int)`,
    [assistantId, at, number],
  );

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

test("days are those of UTC, the oldest first; days without calls are left out", async () => {
  const assistantId = newId();
  for (const at of [
    "2026-02-27T23:59:59.999Z",
    "2026-03-02T00:00:00Z",
    "2026-02-28T00:00:00Z",
    "2026-03-01T23:59:59Z",
  ])
    await calls(assistantId, at);
  const daysOf = async (range: string): Promise<unknown[]> =>
    (await usage(`group_by=day&assistant_id=${assistantId}&${range}`)).rows.map(({ day, runs }) => [
      day,
      runs,
    ]);
  const [before, first, second, after] = ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"].map(
    (day) => [day, 1],
  );
  expect(await daysOf("from=2026-02-28&to=2026-03-01")).toEqual([first, second]);
  expect(await daysOf("from=1970-01-01&to=9999-12-31")).toEqual([before, first, second, after]);
});

test("an answer by day has at most 10,000 rows, and says that there are more", async () => {
  const assistantId = newId();
  await calls(assistantId, "2026-01-01T00:00:00Z", 6_000);
  await calls(assistantId, "2026-01-03T00:00:00Z", 6_000);
  const asked = `group_by=day,thread_id&assistant_id=${assistantId}&from=2026-01-01`;
  const cut = await usage(`${asked}&to=2026-01-03`);
  expect([cut.rows.length, cut.rows.at(-1)?.day, cut.is_complete]).toEqual([10_000, "2026-01-03", false]);
  const whole = await usage(`${asked}&to=2026-01-02`);
  expect([whole.rows.length, whole.is_complete]).toEqual([6_000, true]);
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
])("'%s' is refused", async (asked, named) => {
  const { status, text } = await api.get(`/usage?${asked}`);
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
