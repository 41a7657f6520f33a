import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";
import { commandOf } from "../helpers/command-process.ts";
import { aProject, fixture } from "../helpers/project.ts";

const GRAPHS = { counter: `${fixture("counter.ts")}:graph` };

test("the printed description equals that of a running server", async () => {
  const server = await startTestServer();
  onTestFinished(() => server.close());
  const project = await aProject({ "langgraph.json": { graphs: GRAPHS } });
  const { code, out, stderr } = await commandOf(["openapi"], {
    cwd: dirname(project.path("langgraph.json")),
  });
  expect([code, stderr]).toEqual([0, ""]);
  expect(JSON.parse(out)).toEqual(await (await fetch(`${server.url}/openapi.json`)).json());
});

test("the description is written to a file, without the parts that langgraph.json disables, and without a database", async () => {
  const project = await aProject({ "langgraph.json": { graphs: GRAPHS, http: { disable_store: true } } });
  const { code, out } = await commandOf(["openapi", "--output", "api.json"], {
    cwd: dirname(project.path("langgraph.json")),
    environment: { DATABASE_URL: "postgresql://x:y@127.0.0.1:1/x" },
  });
  expect([code, out]).toEqual([0, ""]);
  const { paths } = JSON.parse(await readFile(project.path("api.json"), "utf8")) as { paths: object };
  expect(Object.keys(paths)).toContain("/threads");
  expect(Object.keys(paths).filter((path) => path.startsWith("/store"))).toEqual([]);
});
