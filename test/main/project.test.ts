import { describe, expect, test } from "vitest";
import { aProject, fixture, logOf } from "../helpers/project.ts";

const graphs = { process: `${fixture("process.ts")}:graph` };

describe("langgraph.json", () => {
  const auth = { path: "./auth.ts:auth" };

  test("a start whose auth handlers can't be loaded is refused, because the server would be open", async () => {
    const project = await aProject({ "langgraph.json": { graphs, auth } });
    const output = await project.refusal();
    expect(output).toMatch(/^threadloom: auth\.path: the file \/.*auth\.ts does not exist\./);
    expect(output).not.toMatch(/migrating|\n\s+at /);
  });

  test("the log of a start names each ignored key and variable once", async () => {
    const project = await aProject({
      "langgraph.json": {
        graphs,
        node_version: "20",
        webhoks: {},
        env: { REDIS_URI: "redis://secret" },
      },
    });
    const server = await project.start();
    await server.address();
    const warnings = logOf(server)
      .filter(({ level }) => level === 40)
      .map(({ msg }) => msg);
    expect(warnings).toEqual(
      expect.arrayContaining([
        `${project.path("langgraph.json")}: 'webhoks' is unknown; did you mean 'webhooks'?`,
        "variables of the hosted server that have no effect here: REDIS_URI (there is no Redis)",
      ]),
    );
    expect(server.output()).not.toContain("redis://secret");
  });
});

describe("the JSON log of a start", () => {
  const key = "0123456789abcdef0123456789abcdef";

  test.each([
    ["open to whoever can connect", {}, "open", 1],
    ["closed by keys", { API_KEYS: key }, "API keys", 0],
  ])("reports that it is %s", async (_what, environment, access, warnings) => {
    const project = await aProject({ "langgraph.json": { graphs } });
    const server = await project.start([], environment);
    await server.address();
    const log = logOf(server);
    expect(log.find(({ msg }) => String(msg).startsWith("listening on"))).toMatchObject({ access });
    const open = log.filter(({ msg }) => String(msg).startsWith("there are no API keys: "));
    expect(open.map(({ level }) => level)).toEqual(Array<number>(warnings).fill(40));
  });
});
