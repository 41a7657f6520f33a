import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { topText, type Snapshot } from "../../../src/cli/runs/top.ts";
import { openGate } from "../../fixtures/gates.ts";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { commandHere } from "../../helpers/command-here.ts";
import { eventually } from "../../helpers/conditions.ts";
import { onServer } from "../../helpers/servers.ts";

const GRAPHS = fileURLToPath(new URL("../../api/runs/traces/langgraph.json", import.meta.url));

let server: TestServer;
let api: Api;
onServer({ graphConfigFile: GRAPHS }, (opened) => ({ server, api } = opened));
afterEach(async () => {
  await api.post("/runs/cancel", { status: "all" });
});

const top = (others: Parameters<typeof commandHere>[2], ...flags: string[]) =>
  commandHere(["top", ...flags], { cwd: tmpdir(), environment: { THREADLOOM_URL: server.url } }, others);

/** A run that stays in the node `waits`, and a run that waits behind it. */
const twoRuns = async (label: string) => {
  const thread = await api.aThread();
  const fields = { assistant_id: "held", input: { label } };
  const running = (await api.aRun(thread, fields)).run_id;
  const waiting = (await api.aRun(thread, fields)).run_id;
  return { thread, running, waiting };
};

test("without a terminal, running and waiting runs are printed once, with the newest node and the tokens", async () => {
  const { thread, running, waiting } = await twoRuns("printed");
  const out = await eventually("the trace shows the node", async () => {
    const printed = await top({});
    expect([printed.code, printed.stderr]).toEqual([0, ""]);
    return printed.out.includes("waits") && printed.out;
  });
  expect(out).toMatch(/^1 running, 1 waiting/);
  expect(out).toMatch(/\nRUNNING +THREAD +TIME +TOKENS +NODE +GRAPH\n/);
  expect(out).toMatch(new RegExp(`\n${running}  ${thread}  [\\d.]+ m?s +18 +waits  held\n`));
  expect(out).toMatch(new RegExp(`\nWAITING .*\n${waiting}  ${thread}  [\\d.]+ m?s +held\n`));
  openGate("printed");
});

test("--json prints once, and --limit prefers running runs", async () => {
  const { running } = await twoRuns("limited");
  const { out } = await top({ terminal: true }, "--json", "--limit", "1");
  expect(JSON.parse(out)).toMatchObject({
    running: [{ run: { run_id: running } }],
    waiting: [],
    queue: { num_running: 1, num_pending: 1 },
  });
  openGate("limited");
});

test("on a terminal the runs are shown on a screen of their own, which Ctrl-C leaves", async () => {
  const { running } = await twoRuns("watched");
  const controlC = new AbortController();
  let screen = "";
  const ended = top({
    terminal: true,
    columns: 80,
    rows: 24,
    write: (text) => void (screen += text),
    stopping: () => controlC.signal,
  });
  await eventually("the screen is drawn again", () => screen.split(running).length > 2);
  controlC.abort();
  expect(await ended).toMatchObject({ code: 0, stderr: "" });
  expect(screen.startsWith("\u001b[?1049h\u001b[?25l\u001b[H1 running")).toBe(true);
  expect(screen.endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
  openGate("watched");
});

test("a server that does not answer causes one sentence, and leaves the terminal as it was", async () => {
  const { code, out, stderr } = await top({ terminal: true }, "--url", "http://127.0.0.1:1");
  expect([code, out]).toEqual([1, ""]);
  expect(stderr).toMatch(/^threadloom top: No server answers at http:\/\/127\.0\.0\.1:1\..*\n$/);
});

const ID = "0199f3a0-0000-7000-8000-000000000000";
const many: Snapshot = {
  running: Array.from({ length: 30 }, () => ({
    run: { run_id: ID, thread_id: ID, graph_id: "g".repeat(60), run_started_at: new Date().toISOString() },
    node: `\u001b[31m${"n".repeat(60)}`,
    tokens: 1_234_567,
  })),
  waiting: [],
  queue: undefined,
};

test("the rows fit the terminal, whole ids of runs included, and names can't control it", () => {
  const text = topText(many, { columns: 80, rows: 24 });
  const lines = text.trimEnd().split("\n");
  expect(lines.length).toBe(23);
  expect(lines.filter((line) => [...line].length > 80)).toEqual([]);
  expect(lines[3]).toMatch(new RegExp(`^${ID} .* 1,234,567 +\\?\\[31mn+…`));
  expect(topText(many, { columns: 140 })).toContain(`${ID}  ${ID}`);
});
