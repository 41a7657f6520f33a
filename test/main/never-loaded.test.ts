import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { eventually } from "../helpers/conditions.ts";
import { aProject, logOf } from "../helpers/project.ts";

/** The module creates a file when its loading begins, and never ends. */
const NEVER = `import { writeFileSync } from "node:fs";
writeFileSync(new URL("begun", import.meta.url), "");
setInterval(() => undefined, 60_000);
await new Promise(() => undefined);
export const graph = undefined;
`;

test("SIGTERM ends a start at once whose graph never finishes loading, and names no runs", async () => {
  const project = await aProject({
    "langgraph.json": { graphs: { endless: "./endless.mjs:graph" } },
    "endless.mjs": NEVER,
  });
  const server = await project.start([], { WORKERS: "0", BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "600" });
  await eventually("the module is being loaded", () => existsSync(project.path("begun")));
  server.child.kill("SIGTERM");
  expect(await server.exit()).toBe(0);
  expect(logOf(server).map(({ msg }) => msg)).toEqual(
    expect.arrayContaining(["stopping; a second signal stops at once", "stopped"]),
  );
  expect(server.output()).not.toMatch(/elsewhere|not everything is closed|took too long/);
});

test("a process that exits without runs logs nothing about runs", async () => {
  const project = await aProject({
    "langgraph.json": { graphs: { leaving: "./leaving.mjs:graph" } },
    "leaving.mjs": "process.exit(3);",
  });
  const server = await project.start([], { WORKERS: "0" });
  expect(await server.exit()).toBe(3);
  const last = logOf(server).at(-1);
  expect(last).toMatchObject({ msg: "the process exits although not everything is closed", runs: [] });
});
