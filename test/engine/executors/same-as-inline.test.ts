import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { HOSTILE_GRAPHS } from "./graphs/config-file.ts";

/** A graph process shows clients the same as a graph in the server's own process. */

let inline: TestServer;
let workers: TestServer;
beforeAll(async () => {
  [inline, workers] = await Promise.all([
    startTestServer({ graphConfigFile: HOSTILE_GRAPHS }),
    startTestServer({ graphConfigFile: HOSTILE_GRAPHS, graphProcesses: 1, logLevel: "debug" }),
  ]);
});
afterAll(() => Promise.all([inline.close(), workers.close()]));

const fromBoth = async <Found>(ask: (api: Api) => Promise<Found>): Promise<[Found, Found]> =>
  await Promise.all([ask(apiOf(inline)), ask(apiOf(workers))]);

const withoutIds = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value).replaceAll(
      /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|run-[\w-]+|"ts":"[^"]*"|"created_at":"[^"]*"|"id":"[0-9a-f]{32}"/g,
      (found) => (found.startsWith('"') ? `${found.slice(0, found.indexOf(":") + 1)}""` : ""),
    ),
  );

describe("in a graph process", () => {
  test("a run ends with the same values, and leaves the same state", async () => {
    const [here, there] = await fromBoth(async (api) => {
      const threadId = await api.aThread();
      const result = await api.aFinishedRun(threadId, { assistant_id: "counter", input: { count: 1 } });
      const { values, next } = await api.state(threadId);
      const { body } = await api.post("/runs/wait", { assistant_id: "counter", input: { count: 5 } });
      return { result, values, next, body };
    });
    expect(there.result).toMatchObject({ count: 2 });
    expect(withoutIds(there)).toEqual(withoutIds(here));
  });

  test("a failed run has the same error text, and the log has its stack", async () => {
    const [here, there] = await fromBoth(async (api) => {
      const { body } = await api.post("/runs/wait", { assistant_id: "failing", input: {} });
      return body;
    });
    expect(there).toEqual(here);
    expect(workers.lines.find((line) => line.includes("the graph failed"))).toContain("failing.ts:");
  });

  test("an interrupt is raised and answered in the same way", async () => {
    const [here, there] = await fromBoth(async (api) => {
      const threadId = await api.aThread();
      const run = { assistant_id: "approval", input: { request: "fly to the moon" } };
      const asked = await api.aFinishedRun(threadId, run);
      const { status, interrupts } = await api.thread(threadId);
      const answered = await api.aFinishedRun(threadId, {
        assistant_id: "approval",
        command: { resume: "yes" },
      });
      return { asked, status, waiting: Object.values(interrupts).flat(), answered };
    });
    expect(there.status).toBe("interrupted");
    expect(there.asked.__interrupt__).toHaveLength(1);
    expect(withoutIds(there)).toEqual(withoutIds(here));
  });

  test("a stream has the same events in the same order, and none is missing", async () => {
    const streamed = async ({ url }: TestServer) => {
      const stream = await openStream(`${url}/runs/stream`, {
        body: {
          assistant_id: "tokens",
          input: { tokens: 3_000 },
          stream_mode: ["messages-tuple", "updates", "values", "debug"],
        },
      });
      return await stream.rest();
    };
    const [here, there] = await Promise.all([streamed(inline), streamed(workers)]);
    expect(there.length).toBeGreaterThan(3_000);
    expect(there.map(({ id, event }) => [id, event])).toEqual(here.map(({ id, event }) => [id, event]));
    const tokensOf = (events: typeof here) =>
      events
        .filter(({ event }) => event === "messages")
        .map(({ data }) => (data as [{ content: string }])[0].content)
        .join("");
    expect(tokensOf(there)).toBe(tokensOf(here));
  });

  test("a stream joined in the middle has the later events", async () => {
    const api = apiOf(workers);
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, {
      assistant_id: "sleep",
      input: { milliseconds: 600_000 },
      stream_mode: ["custom"],
    });
    await api.untilRunIs(threadId, run.run_id, "running");
    const stream = await openStream(`${workers.url}/threads/${threadId}/runs/${run.run_id}/stream`);
    await stream.until(({ data }) => (data as { tick?: number }).tick !== undefined);
    await api.cancel(threadId, run.run_id);
    expect((await stream.rest()).map(({ event }) => event)).not.toContain("error");
  });

  test("a graph's output is a field of the server's log, with its run, and bounded", async () => {
    const api = apiOf(workers);
    const forged = `hi\n{"level":60,"msg":"the database is gone"}`;
    await api.post("/runs/wait", { assistant_id: "printing", input: { text: forged } });
    const lines = workers.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.filter(({ msg }) => msg === "the database is gone")).toEqual([]);
    const printed = lines.filter(({ msg, graph_id }) => msg === "printed" && graph_id === "printing");
    expect(printed.map(({ level, text }) => [level, String(text).slice(0, 30)])).toEqual([
      [40, forged.slice(0, 30)],
      [30, "an object { list: [ 1, 2 ] }"],
      [50, expect.stringContaining("RangeError: too far")],
      [40, expect.stringContaining("(node:7) [DEP0040]")],
      [20, "quietly"],
      [30, expect.stringContaining("┌")],
      [30, "x".repeat(30)],
    ]);
    expect(printed[0]).toMatchObject({ node: "print", run_id: expect.any(String), text: forged });
    for (const line of workers.lines) expect(line.length).toBeLessThan(20_000);
  });
});
