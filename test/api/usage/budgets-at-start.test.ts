import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CronRecord } from "../../../src/api/crons/schemas.ts";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { query } from "../../helpers/query.ts";

/* Budgets are checked when a run starts, because runs that were created before may have used them up. */

const GRAPHS = fileURLToPath(new URL("./budgets.json", import.meta.url));
const SENTENCE =
  "This assistant has used its budget of 50 tokens for today; runs start again tomorrow (UTC).";
const INPUT = { count: 1, messages: [] };

let database: FreshDatabase;
let server: TestServer;
let api: Api;
const start = async (): Promise<void> => {
  const { connectionString } = database;
  server = await startTestServer({ graphConfigFile: GRAPHS, connectionString, shutdownGraceSeconds: 0 });
  api = apiOf(server);
};
beforeAll(async () => {
  database = await freshDatabase();
  await start();
});
afterAll(async () => {
  await server.close();
  await database.drop();
});

const anAssistant = async (graph: string): Promise<string> =>
  (await api.post<{ assistant_id: string }>("/assistants", { graph_id: graph })).body.assistant_id;

/** As if other runs of the assistant had ended. */
const useUpBudgetOf = (assistantId: string): Promise<unknown> =>
  query(
    database,
    `insert into threadloom.model_usage (thread_id, run_id, attempt, part, model, assistant_id, graph_id, calls,
       input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, reasoning_tokens)
     values (gen_random_uuid(), gen_random_uuid(), 1, 0, 'other', $1, 'held', 1, 50, 0, 0, 0, 0)`,
    [assistantId],
  );

const rowsOf = async (table: string, runId: string): Promise<number> => {
  const sql = `select count(*)::int as rows from threadloom.${table} where run_id = $1`;
  return (await query<{ rows: number }>(database, sql, [runId]))[0]!.rows;
};

test("a run that was handed back before its graph began is refused by a later attempt", async () => {
  const assistantId = await anAssistant("twoSteps");
  const threadId = await api.aThread();
  const { run_id: runId } = await api.aRun(threadId, {
    assistant_id: assistantId,
    input: INPUT,
    after_seconds: 600,
  });
  await useUpBudgetOf(assistantId);
  await query(
    database,
    "update threadloom.runs set attempt = 1, available_at = created_at where run_id = $1",
    [runId],
  );
  const run = await api.untilRunIs(threadId, runId, "error", "success");
  expect(run.error).toEqual({ error: "BudgetExceededError", message: SENTENCE });
  expect(await rowsOf("checkpoints", runId)).toBe(0);
});

test.each([
  ["a checkpoint", "model_usage", {}],
  ["tokens", "checkpoints", { durability: "exit" }],
])("a run that has stored %s goes on in its next attempt, although the budget is used up", async (...row) => {
  const [, emptied, fields] = row;
  const assistantId = await anAssistant("held");
  const threadId = await api.aThread();
  const { run_id: runId } = await api.aRun(threadId, {
    assistant_id: assistantId,
    input: { count: 1, label: threadId },
    ...fields,
  });
  await eventually("the run waits", () => isAtGate(threadId));
  await eventually("its tokens are stored", async () => (await rowsOf("model_usage", runId)) > 0);
  await useUpBudgetOf(assistantId);
  await server.close();
  await query(database, `delete from threadloom.${emptied} where run_id = $1`, [runId]);
  const kept = emptied === "checkpoints" ? "model_usage" : "checkpoints";
  expect(await rowsOf(kept, runId)).toBeGreaterThan(0);
  await start();
  await eventually("the run waits again", () => isAtGate(threadId));
  openGate(threadId);
  await api.untilRunIs(threadId, runId, "success");
  const attempts = await query(database, "select attempt from threadloom.runs where run_id = $1", [runId]);
  expect(attempts).toEqual([{ attempt: 2 }]);
});

test("the run of a cron above a budget uses no tokens; the log says why, and the cron stays", async () => {
  const assistantId = await anAssistant("tools");
  await useUpBudgetOf(assistantId);
  const { body: cron } = await api.post<CronRecord>("/runs/crons", {
    assistant_id: assistantId,
    schedule: "0 0 1 1 *",
    input: INPUT,
    on_run_completed: "keep",
  });
  const sql = "update threadloom.crons set next_run_date = now() where cron_id = $1";
  await query(database, sql, [cron.cron_id]);
  // The server looks for due crons at once after a change.
  await api.patch(`/runs/crons/${cron.cron_id}`, {});
  const run = await eventually("the run has ended", async () => {
    const search = { metadata: { cron_id: cron.cron_id } };
    const [found] = (await api.post<RunRecord[]>("/runs/search", search)).body;
    return found?.status === "error" && found;
  });
  expect(await rowsOf("model_usage", run.run_id)).toBe(0);
  const lines = await eventually("the log has the end of the run", () => {
    const ofRun = server.lines.filter((line) => line.includes(run.run_id));
    return ofRun.some((line) => line.includes("run ended")) && ofRun;
  });
  const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(logged.find(({ msg }) => msg === "run ended")).toMatchObject({
    assistant_id: assistantId,
    error_class: "BudgetExceededError",
  });
  expect(logged.find(({ err }) => err !== undefined)?.["err"]).toMatchObject({ message: SENTENCE });
  const { enabled, next_run_date: next } = (await api.get<CronRecord>(`/runs/crons/${cron.cron_id}`)).body;
  expect({ enabled, next }).toEqual({ enabled: true, next: cron.next_run_date });
});
