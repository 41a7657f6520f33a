import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { tableText } from "../../src/cli/printable.ts";
import { saying, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { commandHere } from "../helpers/command-here.ts";
import { startCommand, type StartedCommand } from "../helpers/command-process.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { onServer } from "../helpers/servers.ts";

const KEY = "0123456789abcdef0123456789abcdef";
const MISSING = "0199f3a0-0000-7000-8000-000000000000";

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const threadloom = (...argv: string[]) =>
  commandHere(argv, { cwd: tmpdir(), environment: { THREADLOOM_URL: server.url } });

const aThread = async (): Promise<string> =>
  (await api.post<{ thread_id: string }>("/threads", {})).body.thread_id;
const aRun = async (thread: string, body: object): Promise<string> =>
  (await api.post<{ run_id: string }>(`/threads/${thread}/runs`, body)).body.run_id;
const statusOf = async (thread: string, run: string): Promise<string> =>
  (await api.get<{ status: string }>(`/threads/${thread}/runs/${run}`)).body.status;

test("runs are listed by status and graph, and one is shown with its error, the failed node, and durations", async () => {
  const thread = await aThread();
  const run = await aRun(thread, { assistant_id: "failing", input: {} });
  await eventually("the run has failed", async () => (await statusOf(thread, run)) === "error");

  const list = await threadloom("runs", "list", "--status", "error", "--graph", "failing", "--since", "1h");
  expect([list.code, list.stderr]).toEqual([0, ""]);
  expect(list.out).toMatch(/^RUN +STATUS +GRAPH +THREAD +CREATED +TOOK +ATTEMPTS +ERROR\n/);
  expect(list.out).toContain(`${run}  error   failing  ${thread}`);
  const none = await threadloom("runs", "list", "--status", "error", "--graph", "counter");
  expect([none.code, none.out, none.stderr]).toEqual([0, "", "There are none.\n"]);

  const shown = await threadloom("runs", "show", run, "--json");
  expect(JSON.parse(shown.out)).toMatchObject({
    run_id: run,
    thread_id: thread,
    status: "error",
    failed_in: ["fail: This graph always fails."],
  });
  const text = await threadloom("runs", "show", run);
  expect(text.out).toMatch(/\nGraph +failing\nStatus +error\nAttempts +1\n/);
  expect(text.out).toMatch(/\nTook +[\d.]+ (ms|s)\n/);
  expect(text.out).toMatch(/\nError +\w+/);
});

test("a run whose start is earlier than its creation, by another clock, has waited for no time", async () => {
  const thread = await aThread();
  const run = await aRun(thread, { assistant_id: "counter", input: {} });
  await eventually("the run is done", async () => (await statusOf(thread, run)) === "success");
  await query(
    server,
    "update threadloom.runs set started_at = created_at - interval '1 millisecond' where run_id = $1",
    [run],
  );
  expect((await threadloom("runs", "show", run)).out).toMatch(/\nWaited +0 ms\n/);
});

test("a run is followed from its first event to its end", async () => {
  const thread = await aThread();
  const run = await aRun(thread, {
    assistant_id: "sleep",
    input: { milliseconds: 3_000 },
    stream_mode: ["updates"],
    stream_resumable: true,
  });
  const { code, out } = await threadloom("runs", "tail", run, "--json");
  const events = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { event: string });
  expect([code, events[0]?.event]).toEqual([0, "metadata"]);
  expect(events.map(({ event }) => event)).toContain("updates");
  expect(await statusOf(thread, run)).toBe("success");
});

test("following or cancelling an ended run reports how it ended", async () => {
  const thread = await aThread();
  const done = await aRun(thread, { assistant_id: "counter", input: {} });
  await eventually("the run is done", async () => (await statusOf(thread, done)) === "success");
  const followed = await threadloom("runs", "tail", done);
  expect([followed.code, followed.stderr]).toEqual([0, `Run '${done}' has ended: success.\n`]);
  const refused = await threadloom("runs", "cancel", done);
  expect([refused.code, refused.stderr]).toEqual([1, `threadloom runs: Run '${done}' has ended: success.\n`]);

  const other = await aThread();
  const failing = await aRun(other, { assistant_id: "failing", input: {} });
  await eventually("the run has failed", async () => (await statusOf(other, failing)) === "error");
  const how = expect.stringContaining(`Run '${failing}' has ended: error (`) as string;
  const late = await threadloom("runs", "cancel", failing);
  expect([late.code, late.stderr]).toEqual([1, how]);
  const ended = await threadloom("runs", "tail", failing);
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("This graph always fails.")]);
});

test("a cancelled run ends; of several ids the missing ones are named", async () => {
  const thread = await aThread();
  const run = await aRun(thread, { assistant_id: "sleep", input: { milliseconds: 60_000 } });
  await eventually("the run runs", async () => (await statusOf(thread, run)) === "running");
  const { code, out, stderr } = await threadloom("runs", "cancel", run, MISSING, "--json");
  expect(code).toBe(1);
  expect(JSON.parse(out)).toEqual({ cancelled: [run], failed: [MISSING] });
  expect(stderr).toContain(MISSING);
  await eventually("it is cancelled", async () => (await statusOf(thread, run)) === "interrupted");
});

test("a thread is listed, shown with its size and checkpoints, and deleted only with --yes", async () => {
  const thread = await aThread();
  await api.post(`/threads/${thread}/runs/wait`, { assistant_id: "agent", input: saying("Hello") });
  const list = await threadloom("threads", "list", "--graph", "agent", "--json");
  expect((JSON.parse(list.out) as { thread_id: string }[]).map(({ thread_id }) => thread_id)).toContain(
    thread,
  );
  const shown = await threadloom("threads", "show", thread);
  expect(shown.out).toMatch(/\nState +messages\nStored +\d+ bytes, \d+ checkpoints\n/);
  expect(shown.out).toMatch(/\nCheckpoints +[\da-f-]{36} {2}.* {2}step \d+ {2}loop\n/);

  const unsure = await threadloom("threads", "delete", thread);
  expect([unsure.code, unsure.stderr]).toEqual([1, expect.stringContaining("--yes")]);
  expect((await api.get(`/threads/${thread}`)).status).toBe(200);
  expect((await threadloom("threads", "delete", thread, "--yes")).code).toBe(0);
  expect((await api.get(`/threads/${thread}`)).status).toBe(404);
});

test.each([
  ["Ctrl-C", ({ child }: StartedCommand) => void child.kill("SIGINT")],
  ["its reader stops, like head", ({ child }: StartedCommand) => void child.stdout?.destroy()],
])("a thread is followed over its runs until %s", async (_, end) => {
  const thread = await aThread();
  const following = startCommand(["threads", "tail", thread], {
    cwd: tmpdir(),
    environment: { THREADLOOM_URL: server.url },
  });
  const aRunUntil = (what: string, isDone: () => boolean): Promise<unknown> =>
    eventually(what, async () => {
      await api.post(`/threads/${thread}/runs/wait`, { assistant_id: "counter", input: {} });
      return isDone();
    });
  // Before that, no event of a run is kept for the follower.
  await aRunUntil("an event of the run arrives", () => following.out().includes("metadata"));
  end(following);
  await aRunUntil("it ends", () => following.child.exitCode !== null);
  expect(await following.ended).toMatchObject({ code: 0, stderr: "" });
});

test("a server that does not answer, a missing id and a wrong key cause one sentence each", async () => {
  const nobody = await threadloom("runs", "list", "--url", "http://127.0.0.1:1");
  expect([nobody.code, nobody.stderr]).toEqual([
    1,
    "threadloom runs: No server answers at http://127.0.0.1:1. Start one with 'threadloom start', or choose another with --url.\n",
  ]);
  const missing = await threadloom("threads", "show", MISSING);
  expect([missing.code, missing.stderr.includes(MISSING)]).toEqual([1, true]);
  expect((await threadloom("runs", "show", "5")).code).toBe(2);

  const closed = await startTestServer({ apiKeys: [KEY] });
  try {
    const refused = await threadloom("runs", "list", "--url", closed.url);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("--api-key or THREADLOOM_API_KEY"),
    ]);
    expect((await threadloom("runs", "list", "--url", closed.url, "--api-key", KEY)).code).toBe(0);
  } finally {
    await closed.close();
  }
});

test("a table fits the terminal's width, and text of callers can't control the terminal", () => {
  const text = tableText(["ID", "ERROR"], [["1", `\u001b[31m${"x".repeat(100)}`]], 30);
  expect(text.split("\n").every((line) => line.length <= 30)).toBe(true);
  expect(text).toContain("?[31mxxx");
  expect(text).toContain("…");
  expect(tableText(["ID", "ERROR"], [["1", "x".repeat(100)]], undefined)).toContain("x".repeat(100));
});
