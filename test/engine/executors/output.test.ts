import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { HOSTILE_GRAPHS } from "./graphs/config-file.ts";

const WITHIN_MS = 120_000;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: HOSTILE_GRAPHS,
    graphProcesses: 1,
  });
});
afterAll(() => server.close());

interface Printed {
  level: number;
  msg: string;
  text: string;
  graph_process: number;
}
/** The printed texts with this start, in the order of the levels; they may arrive after the end of the run. */
const printedOf = (start: string): Promise<Printed[]> =>
  eventually(
    "both streams were read",
    () => {
      const printed = server.lines
        .map((line) => JSON.parse(line) as Printed)
        .filter(({ msg, text }) => msg === "printed" && text?.startsWith(start));
      return printed.length === 2 && printed.sort((one, other) => one.level - other.level);
    },
    WITHIN_MS,
  );

test("output that a graph writes past its console is a log field with its process, and can't forge a log line", async () => {
  const text = `{"level":60,"msg":"the database is gone","time":1}`;
  await apiOf(server).post("/runs/wait", { assistant_id: "raw-printing", input: { text } });
  expect(await printedOf(text)).toMatchObject([
    { level: 30, text, graph_process: expect.any(Number) },
    { level: 40, text, graph_process: expect.any(Number) },
  ]);
  expect(server.lines.filter((line) => line.includes('"msg":"the database is gone"'))).toEqual([]);
});

test("a line of a megabyte is cut, and the next one is whole", async () => {
  const api = apiOf(server);
  await api.post("/runs/wait", { assistant_id: "raw-printing", input: { text: "y".repeat(1_000_000) } });
  for (const { text } of await printedOf("yyyy")) {
    expect(text.slice(-40)).toMatch(/^y+…/);
    expect(text.length).toBeLessThan(20_000);
  }
  await api.post("/runs/wait", { assistant_id: "raw-printing", input: { text: "afterwards" } });
  expect((await printedOf("afterwards")).map(({ text }) => text)).toEqual(["afterwards", "afterwards"]);
});

interface Line {
  msg: string;
  [field: string]: unknown;
}
const untilLogged = (what: string, isMeant: (line: Line) => boolean): Promise<Line> =>
  eventually(
    what,
    () => server.lines.map((line) => JSON.parse(line) as Line).find((line) => isMeant(line)),
    WITHIN_MS,
  );

const aHostileRun = async (input: { steps?: number; [field: string]: unknown }) => {
  const { run_id, thread_id } = await apiOf(server).aRun(await apiOf(server).aThread(), {
    assistant_id: "hostile",
    input,
    // The steps before and after count, too. The machine's speed decides how many of them an attempt has left.
    config: { recursion_limit: (input.steps ?? 0) + 3 },
  });
  return { run_id, thread_id };
};
const untilSuccess = async ({ run_id, thread_id }: { run_id: string; thread_id: string }): Promise<void> => {
  const status = await eventually(
    "the run ends",
    async () => {
      const { status } = await apiOf(server).run(thread_id, run_id);
      return status !== "pending" && status !== "running" && status;
    },
    WITHIN_MS,
  );
  expect(status).toBe("success");
};
const lostAttempts = async ({ run_id }: { run_id: string }): Promise<number | undefined> => {
  const rows = await query<{ lost_attempts: number }>(
    server,
    "select lost_attempts from threadloom.runs where run_id = $1",
    [run_id],
  );
  return rows[0]?.lost_attempts;
};

test("an unhandled rejection is logged with its run, and costs no run an attempt", async () => {
  const neighbour = await aHostileRun({ steps: 5 });
  const culprit = await aHostileRun({ harm: "reject", attempts: 1, steps: 1 });
  const { graph_id, node } = await untilLogged(
    "the log reports it",
    ({ msg, run_id }) => msg === "a rejection was not handled" && run_id === culprit.run_id,
  );
  expect({ graph_id, node }).toEqual({ graph_id: "hostile", node: "hurt" });
  for (const run of [neighbour, culprit]) {
    await untilSuccess(run);
    expect(await lostAttempts(run)).toBe(0);
  }
});
