import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { apiOf, type Api, type Refusal } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

const GRAPHS = fileURLToPath(new URL("./budgets.json", import.meta.url));
const TOKENS = 50;
const CALLS_OF_RUN = 3;
const TOKENS_OF_RUN = 18 * CALLS_OF_RUN;
const SLOTS = 4;
const INPUT = { count: 1, messages: [] };

let server: TestServer;
let api: Api;
onServer({ graphConfigFile: GRAPHS }, (opened) => ({ server, api } = opened));

const anAssistant = async (graph: string): Promise<string> =>
  (await api.post<{ assistant_id: string }>("/assistants", { graph_id: graph })).body.assistant_id;

const usedBy = async (assistantId: string): Promise<number> => {
  const sql = `select coalesce(sum(input_tokens + output_tokens), 0)::float8 as tokens
    from threadloom.model_usage where assistant_id = $1`;
  return (await query<{ tokens: number }>(server, sql, [assistantId]))[0]!.tokens;
};

test("a run is refused with 429 when the budget of its assistant is used up; other assistants go on", async () => {
  const assistantId = await anAssistant("tools");
  const ask = async () => {
    const threadId = await api.aThread();
    return await api.post<Refusal>(`/threads/${threadId}/runs/wait`, {
      assistant_id: assistantId,
      input: INPUT,
    });
  };
  expect((await ask()).status).toBe(200);
  expect(await usedBy(assistantId)).toBe(TOKENS_OF_RUN);
  const refused = await eventually("the budget is used up", async () => {
    const answer = await ask();
    return answer.status === 429 && answer;
  });
  expect(refused.body.detail).toBe(
    `This assistant has used its budget of ${TOKENS} tokens for today; runs start again tomorrow (UTC).`,
  );
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  const threadId = await api.aThread();
  expect(
    (await api.post(`/threads/${threadId}/runs/wait`, { assistant_id: "twoSteps", input: INPUT })).status,
  ).toBe(200);
});

test("a run that waited ends with an error if the budget was used up meanwhile", async () => {
  const assistantId = await anAssistant("tools");
  const threadId = await api.aThread();
  const first = await api.aRun(threadId, { assistant_id: "held", input: { count: 1, label: threadId } });
  await eventually("the first run waits", () => isAtGate(threadId));
  const second = await api.aRun(threadId, {
    assistant_id: assistantId,
    input: INPUT,
    multitask_strategy: "enqueue",
  });
  await api.post("/runs/wait", { assistant_id: assistantId, input: INPUT });
  await eventually("the budget is used up", async () => {
    const { status } = await api.post("/runs/wait", { assistant_id: assistantId, input: INPUT });
    return status === 429;
  });
  openGate(threadId);
  await api.untilRunIs(threadId, first.run_id, "success");
  const run = await api.untilRunIs(threadId, second.run_id, "error");
  expect(run.error).toMatchObject({ error: "BudgetExceededError" });
});

test("100 runs at once on two servers exceed a budget only by the runs that were under way", async () => {
  const options = { graphConfigFile: GRAPHS, jobsPerWorker: SLOTS };
  const first = await startTestServer(options);
  const second = await startTestServer({ ...options, connectionString: first.connectionString });
  try {
    const ask = async (on: TestServer): Promise<number> =>
      (await apiOf(on).post("/runs/wait", { assistant_id: "tools", input: INPUT })).status;
    await Promise.all(Array.from({ length: 100 }, (_, index) => ask(index % 2 === 0 ? first : second)));
    expect(await ask(first)).toBe(429);
    const counted = "select distinct sum(calls)::int as calls from threadloom.model_usage group by run_id";
    expect(await query(first, counted), "each call counts once, although servers share LangChain").toEqual([
      { calls: CALLS_OF_RUN },
    ]);
    const sql = "select sum(input_tokens + output_tokens)::float8 as tokens from threadloom.model_usage";
    const [used] = await query<{ tokens: number }>(first, sql);
    expect(used!.tokens).toBeGreaterThanOrEqual(TOKENS);
    expect(used!.tokens).toBeLessThanOrEqual(TOKENS + 2 * (2 * SLOTS) * TOKENS_OF_RUN);
  } finally {
    await second.close();
    await first.close();
  }
});

test("a budget of money names the currency; one per caller does not limit callers without a name", async () => {
  const costs = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./costs.json", import.meta.url)),
  });
  try {
    const ask = () =>
      apiOf(costs).post<Refusal>("/runs/wait", { assistant_id: "streams", input: { count: 1 } });
    expect((await ask()).status).toBe(200);
    const { status, body } = await ask();
    expect([status, body.detail]).toEqual([
      429,
      "This assistant has used its budget of 0.05 EUR for this month; runs start again next month (UTC).",
    ]);
  } finally {
    await costs.close();
  }
});
