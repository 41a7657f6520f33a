import { expect, test } from "vitest";
import { apiOf } from "../helpers/api.ts";
import { aProject, fixture, logOf } from "../helpers/project.ts";

test("output of the SDK's getLogger is in the log, with the run and the node, bounded", async () => {
  const project = await aProject({
    "langgraph.json": { graphs: { logging: `${fixture("logging.ts")}:graph` } },
  });
  const server = await project.start([], { LOG_LEVEL: "debug" });
  const api = apiOf({ url: await server.address() });
  const { body } = await api.post<{ text: string }>("/runs/wait", {
    assistant_id: "logging",
    input: { text: "hi" },
  });
  expect(body.text).toBe("hi!");

  const lines = logOf(server).filter(({ graph_id }) => graph_id === "logging");
  const line = (msg: string) => lines.find((one) => String(one.msg).startsWith(msg));
  expect(line("told")).toMatchObject({
    level: 30,
    msg: "told\n{forged}",
    node: "tell",
    run_id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    thread_id: expect.any(String) as string,
    fields: { customer: 7, level: "ours" },
  });
  expect(line("an object")).toMatchObject({ level: 40, fields: { list: [1, 2] } });
  expect(line("failed")).toMatchObject({ level: 50, err: { type: "RangeError", message: "too far" } });
  expect(line("nobody reads this")).toBeUndefined();
  expect(line("long")).toMatchObject({ level: 20 });
  for (const one of lines) expect(JSON.stringify(one).length).toBeLessThan(20_000);
});
