import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findPostmaster } from "../../src/platform/database/embedded/embedded.ts";
import { findPlace } from "../../src/platform/database/embedded/place.ts";
import { apiOf } from "../helpers/api.ts";
import { commandOf } from "../helpers/command-process.ts";
import { aProject } from "../helpers/project.ts";
import { spawnServer, type ServerProcess } from "../helpers/server-process.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";
import { developed, agentSource } from "../main/dev/dev-project.ts";

/** One test for each kind of process, for `npm test`; the details are in the slow tests. */

const GRAPH = `
  import { Annotation, START, StateGraph } from "@langchain/langgraph";
  export const graph = new StateGraph(Annotation.Root({ executedBy: Annotation() }))
    .addNode("look", () => ({ executedBy: process.pid }))
    .addEdge(START, "look")
    .compile();`;

const projectOfGraph = async () => {
  const project = await aProject({
    "package.json": { type: "module" },
    "langgraph.json": { graphs: { agent: "./agent.js:graph" } },
    "agent.js": GRAPH,
  });
  await project.linkPackages();
  return project;
};

test("a server with a graph process and the embedded database keeps a thread through a kill -9, and SIGTERM closes all", async () => {
  const project = await projectOfGraph();
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const data = folder.dataFolder;
  const start = (): ServerProcess => {
    const argv = [
      "--config",
      project.path("langgraph.json"),
      "--port",
      "0",
      "--data",
      data,
      "--workers",
      "1",
    ];
    const server = spawnServer(argv);
    onTestFinished(() => server.kill());
    return server;
  };

  const killed = start();
  const before = apiOf({ url: await killed.address() });
  const threadId = await before.aThread();
  const { executedBy } = await before.aFinishedRun(threadId, { assistant_id: "agent", input: {} });
  expect(executedBy).toEqual(expect.any(Number));
  expect(executedBy).not.toBe(killed.child.pid);
  await killed.kill();

  const next = start();
  const after = apiOf({ url: await next.address() });
  expect((await after.state(threadId)).values).toEqual({ executedBy });
  const place = await findPlace(data);
  expect(await findPostmaster(place)).toBeDefined();
  next.child.kill("SIGTERM");
  expect(await next.exit()).toBe(0);
  expect(await findPostmaster(place)).toBeUndefined();
  expect(await readdir(join(place.folder, "cluster/data"))).not.toContain("postmaster.pid");
});

test("threadloom dev executes a new version of a graph", async () => {
  const { edit, said, untilSaid } = await developed();
  expect(await said()).toBe("code1 word1 data1 glad");
  await edit("src/agent.ts", agentSource("code2"));
  await untilSaid("code2 word1 data1 glad");
});

test("a command prints its answer and ends with its exit code", async () => {
  const project = await projectOfGraph();
  const argv = ["doctor", "--port", "0", "--json"];
  const DATABASE_URL = "postgresql://me@127.0.0.1:1/app";
  const { code, out } = await commandOf(argv, { cwd: project.path("."), environment: { DATABASE_URL } });
  expect(code).toBe(1);
  const { checks } = JSON.parse(out) as { checks: { name: string }[] };
  expect(checks).toContainEqual({ level: "ok", name: "Graphs", text: "agent" });
  expect(checks).toContainEqual(expect.objectContaining({ level: "fail", name: "Database" }));
});
