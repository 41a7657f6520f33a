import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Trace } from "../../../src/api/runs/traces/schemas.ts";
import { openGate } from "../../fixtures/gates.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { commandHere } from "../../helpers/command-here.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

const GRAPHS = fileURLToPath(new URL("../../api/runs/traces/langgraph.json", import.meta.url));
const MISSING = "0199f3a0-0000-7000-8000-000000000000";

let server: TestServer;
let api: Api;
onServer({ graphConfigFile: GRAPHS }, (opened) => ({ server, api } = opened));

const show = (run: string, columns?: number, ...flags: string[]) =>
  commandHere(
    ["runs", "show", run, ...flags],
    { cwd: tmpdir(), environment: { THREADLOOM_URL: server.url } },
    { columns },
  );

const anEndedRun = async (graph: string, at = api): Promise<{ thread: string; run: string }> => {
  const thread = await at.aThread();
  const run = await at.aRun(thread, { assistant_id: graph, input: { count: 1, messages: [] } });
  await at.untilRunIs(thread, run.run_id, "success", "error");
  return { thread, run: run.run_id };
};

test("a run is shown with its tokens, its slowest node, and a tree of nodes, models and tools in 80 columns", async () => {
  const { run } = await anEndedRun("tools");
  const { code, out, stderr } = await show(run, 80);
  expect([code, stderr]).toEqual([0, ""]);
  expect(out).toMatch(/\nTokens +calling-2026: 22 in \(10 cached\), 14 out, 2 calls\n +plain-2026: 11 in/);
  expect(out).toMatch(/\nSlowest node +(model|tools), \d+ ms/);
  const [, tree = ""] = out.split("\n\n");
  const lines = tree.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^ +0 +\d+ m?s$/);
  expect(lines.slice(1).map((line) => line.replace(/ {2,}\d+ ms *█+$/, ""))).toEqual([
    "model",
    "  model calling",
    "tools",
    "  tool add",
    "  tool ask_model",
    "    model plain",
    "model",
    "  model calling",
  ]);
  expect(lines.filter((line) => [...line].length > 80)).toEqual([]);
  expect(lines.some((line) => [...line].length === 80)).toBe(true);
});

test("the timeline has no colour and no control characters", async () => {
  const { run } = await anEndedRun("tools");
  expect((await show(run, 120)).out.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
});

test("a failed span has its status in words, and the innermost one its error with its place", async () => {
  const { run } = await anEndedRun("failing");
  const { out } = await show(run, 80);
  expect(out).toMatch(/\nbroken +\d+ ms {2}error +█+\n {2}model broken +\d+ ms {2}error +█+\n/);
  expect(out).toMatch(/█\n {4}Error: the model is not there\n {4}at runs\/traces\/model\.ts:\d+:\d+\n/);
  expect(out.match(/ {4}Error: the model is not there/g)?.length).toBe(1);
});

test("a run that goes on is shown with its open spans", async () => {
  const thread = await api.aThread();
  const run = await api.aRun(thread, { assistant_id: "held", input: { label: "shown" } });
  await eventually("the open node is shown", async () =>
    /\nwaits +[\d.]+ m?s {2}running +░+\n/.test((await show(run.run_id, 80)).out),
  );
  openGate("shown");
});

test("of a run with thousands of spans, 200 are shown, and the rest is counted", async () => {
  const { run } = await anEndedRun("many");
  const { out } = await show(run, 80);
  expect(out.match(/\n {2}tool add /g)?.length).toBe(199);
  expect(out).toMatch(/\n[\d,]+ shorter spans are left out; --json has all\.\n/);
  expect(out).toMatch(/\n[\d,]+ spans were not stored, because the trace was full\.\n/);
});

test("--json has the trace beside the run", async () => {
  const { thread, run } = await anEndedRun("twoSteps");
  const trace = (await api.get<Trace>(`/threads/${thread}/runs/${run}/trace`)).body;
  expect(JSON.parse((await show(run, undefined, "--json")).out)).toMatchObject({ run_id: run, trace });
  const named = await show(run, undefined, "--json", "--thread", thread);
  expect(JSON.parse(named.out)).toMatchObject({ run_id: run, trace });
});

test("a run whose trace was removed is shown without a timeline, and with the reason", async () => {
  const { run } = await anEndedRun("twoSteps");
  await query(server, "delete from threadloom.run_traces where run_id = $1", [run]);
  const { code, out, stderr } = await show(run);
  expect([code, out.includes("\nStatus ")]).toEqual([0, true]);
  expect(stderr).toMatch(/^The run has no trace: TRACES is off.*TRACE_RETENTION_SECONDS\.\n$/);
});

test("a run that waits, or a run of a server without traces, is shown with the reason", async () => {
  const thread = await api.aThread();
  const waiting = await api.aRun(thread, { assistant_id: "twoSteps", input: {}, after_seconds: 3_600 });
  const shown = await show(waiting.run_id);
  expect(shown.stderr).toBe("The run waits, so it has no trace yet.\n");
  expect(shown.out).toMatch(/\nDue +\d{4}-.*\nWaited +-\n/);
  await api.cancel(thread, waiting.run_id);

  const silent = await startTestServer({ graphConfigFile: GRAPHS, traces: "off" });
  try {
    const { run } = await anEndedRun("twoSteps", apiOf(silent));
    const quiet = await show(run, undefined, "--url", silent.url);
    expect([quiet.code, quiet.stderr]).toEqual([0, expect.stringContaining("TRACES is off")]);
  } finally {
    await silent.close();
  }
});

test("a missing run causes one sentence", async () => {
  const { code, out, stderr } = await show(MISSING);
  expect([code, out]).toEqual([1, ""]);
  expect(stderr).toBe(`threadloom runs: There is no run '${MISSING}', or this API key can't see it.\n`);
});
