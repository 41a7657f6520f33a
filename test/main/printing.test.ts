import { expect, test, vi } from "vitest";
import { apiOf } from "../helpers/api.ts";
import { PATIENTLY } from "../helpers/conditions.ts";
import { aProject, fixture, logOf } from "../helpers/project.ts";

test("a graph's output is a bounded field of the server's log, which can't forge lines, and a warning of Node is no error", async () => {
  const project = await aProject({
    "langgraph.json": { graphs: { printing: `${fixture("printing.ts")}:graph` } },
  });
  const server = await project.start([], { LOG_LEVEL: "debug" });
  const api = apiOf({ url: await server.address() });
  const forged = `hi\n{"level":60,"msg":"the database is gone"}`;
  const { body } = await api.post<{ text: string }>("/runs/wait", {
    assistant_id: "printing",
    input: { text: forged },
  });
  expect(body.text).toBe(`${forged}!`);

  const lines = logOf(server);
  expect(lines.filter(({ msg }) => msg === "the database is gone")).toEqual([]);
  for (const line of server.output().split("\n")) expect(line).toMatch(/^(\{.*\})?$/);
  const printed = lines.filter(({ msg }) => msg === "printed");
  expect(printed.map(({ level, text }) => [level, String(text).slice(0, 200)])).toEqual([
    [30, "loaded"],
    [40, forged],
    [30, "an object { list: [ 1, 2 ] }"],
    [50, expect.stringContaining("RangeError: too far")],
    [40, "(node:7) [DEP0040] DeprecationWarning: soon gone"],
    [20, "quietly"],
    [30, expect.stringContaining("│ 0       │ 1 │")],
    [30, "x".repeat(200)],
  ]);
  expect(printed[1]).toMatchObject({ graph_id: "printing", node: "print", run_id: expect.any(String) });
  for (const line of printed) expect(JSON.stringify(line).length).toBeLessThan(20_000);
});

test("dev shows a graph's output unchanged", async () => {
  const project = await aProject({
    "langgraph.json": { graphs: { printing: `${fixture("printing.ts")}:graph` } },
  });
  const server = await project.develop([], { LOG_FORMAT: "pretty" });
  const url = await vi.waitFor(() => /Address +(http\S+)/.exec(server.output())![1]!, PATIENTLY);
  await apiOf({ url }).post("/runs/wait", {
    assistant_id: "printing",
    input: { text: "one line\n  and another" },
  });
  await vi.waitFor(
    () => expect(server.output()).toContain("\none line\n  and another\nan object { list: [ 1, 2 ] }\n"),
    PATIENTLY,
  );
});
