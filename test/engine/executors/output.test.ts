import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { HOSTILE_GRAPHS } from "./graphs/config-file.ts";

const WITHIN_MS = 60_000;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ graphConfigFile: HOSTILE_GRAPHS, graphProcesses: 1 });
});
afterAll(() => server.close());

interface Printed {
  level: number;
  msg: string;
  text: string;
  graph_process: number;
}
/** What was printed of a text that starts so, in the order of the levels; it may come after the end of the run. */
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

test("what a graph writes past its console is a field of the log, with its process, and forges no line", async () => {
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

test.each([
  ["calls exit", "exit", "a graph has ended its process"],
  ["throws in a timer", "throw", "an exception was not caught in a graph process"],
])("of all runs in a process that ends, the one that %s is named", async (_what, harm, msg) => {
  const api = apiOf(server);
  const neighbour = await api.aRun(await api.aThread(), { assistant_id: "hostile", input: { steps: 5 } });
  const culprit = await api.aRun(await api.aThread(), {
    assistant_id: "hostile",
    input: { harm, attempts: 1, steps: 1 },
  });
  const named = await eventually(
    "the process has said why it ends",
    () => {
      const said = server.lines
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((line) => line["msg"] === msg);
      return said.length > 0 && said;
    },
    WITHIN_MS,
  );
  expect(named).toMatchObject([{ run_id: culprit.run_id, node: "hurt", graph_process: expect.any(Number) }]);
  for (const { thread_id, run_id } of [neighbour, culprit]) {
    await eventually(
      "both runs end as success",
      async () => (await api.run(thread_id, run_id)).status === "success",
      WITHIN_MS,
    );
  }
});
