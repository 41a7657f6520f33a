import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Trace } from "../../src/api/runs/traces/schemas.ts";
import type { Api } from "../helpers/api.ts";
import type { TestServer } from "../helpers/app.ts";
import { commandHere } from "../helpers/command-here.ts";
import { onServer } from "../helpers/servers.ts";

const GRAPHS = fileURLToPath(new URL("../api/runs/traces/langgraph.json", import.meta.url));
const MISSING = "0199f3a0-0000-7000-8000-000000000000";

let server: TestServer;
let api: Api;
onServer({ graphConfigFile: GRAPHS }, (opened) => ({ server, api } = opened));

const show = (run: string, ...flags: string[]) =>
  commandHere(["runs", "show", run, ...flags], {
    cwd: tmpdir(),
    environment: { THREADLOOM_URL: server.url },
  });

const anEndedRun = async (graph: string): Promise<{ thread: string; run: string }> => {
  const thread = await api.aThread();
  const run = await api.aRun(thread, { assistant_id: graph, input: { count: 1, messages: [] } });
  await api.untilRunIs(thread, run.run_id, "success", "error");
  return { thread, run: run.run_id };
};

test("a run is shown with the tokens of each model, and without control characters", async () => {
  const { run } = await anEndedRun("tools");
  const { code, out, stderr } = await show(run);
  expect([code, stderr]).toEqual([0, ""]);
  expect(out).toMatch(/\nTokens +calling-2026: 22 in \(10 cached\), 14 out, 2 calls\n +plain-2026: 11 in/);
  expect(out.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
});

test("a failed run is shown with its error", async () => {
  const { run } = await anEndedRun("failing");
  expect((await show(run)).out).toMatch(/\nStatus +error\n[^]*the model is not there/);
});

test("--json has the trace beside the run", async () => {
  const { thread, run } = await anEndedRun("twoSteps");
  const trace = (await api.get<Trace>(`/threads/${thread}/runs/${run}/trace`)).body;
  expect(JSON.parse((await show(run, "--json")).out)).toMatchObject({ run_id: run, trace });
});

test("a run that waits is shown with the time when it is due", async () => {
  const thread = await api.aThread();
  const waiting = await api.aRun(thread, { assistant_id: "twoSteps", input: {}, after_seconds: 3_600 });
  const shown = await show(waiting.run_id);
  expect([shown.code, shown.stderr]).toEqual([0, ""]);
  expect(shown.out).toMatch(/\nDue +\d{4}-.*\nWaited +-\n/);
  await api.cancel(thread, waiting.run_id);
});

test("a missing run causes one sentence", async () => {
  const { code, out, stderr } = await show(MISSING);
  expect([code, out]).toEqual([1, ""]);
  expect(stderr).toBe(`threadloom runs: There is no run '${MISSING}', or this API key can't see it.\n`);
});
