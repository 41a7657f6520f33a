import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { programOf } from "../../helpers/compiled-package.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { aProject, fixture } from "../../helpers/project.ts";

test("the server of dev stops when the shell ends in which npm started it", async () => {
  const project = await aProject({
    "package.json": { type: "module" },
    "langgraph.json": { graphs: { counter: `${fixture("counter.ts")}:graph` } },
  });
  await project.linkPackages();
  const database = await freshDatabase();
  const argv = ["dev", "--config", project.path("langgraph.json"), "--port", "0", "--no-open"];
  // Every shell with work left starts the program as a child, and is not replaced by it.
  const shell = spawn("sh", ["-c", '"$0" "$@"; exit $?', process.execPath, programOf(), ...argv], {
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      DATABASE_URL: database.connectionString,
      LOG_FORMAT: "json",
      SOURCE_SCHEMAS: "false",
      npm_lifecycle_event: "npx",
    },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  onTestFinished(async () => {
    try {
      process.kill(-(shell.pid ?? 0), "SIGKILL");
    } catch {
      // All of them have ended.
    }
    await database.drop();
  });
  let written = "";
  shell.stdout.on("data", (chunk: Buffer) => (written += chunk.toString()));
  await eventually("it listens", () => written.includes('"msg":"listening on'));
  shell.kill("SIGTERM");
  // The output stays open as long as one of them lives.
  await once(shell, "close");
  expect(written).toContain('"msg":"stopped"');
});
