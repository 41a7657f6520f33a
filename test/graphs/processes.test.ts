import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { aConfig, aFile } from "./helpers.ts";

/** The test runner has a module loader of its own, so that the two real ways of starting run in processes of their own. */
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const script = (room: string, configPath: string) => `
  const { loadGraphs } = await import(${JSON.stringify(room)});
  const own = await import("@langchain/langgraph");
  const logger = { warn() {}, debug() {} };
  try {
    const graphs = await loadGraphs({ configPath: ${JSON.stringify(configPath)}, logger });
    const texts = {};
    for (const id of graphs.ids) texts[id] = (await (await graphs.resolve(id)).invoke({}, { configurable: {} })).text;
    const graph = await graphs.resolve(graphs.ids[0]);
    await graphs.close();
    console.log(JSON.stringify({ texts, oneCopy: graph.builder instanceof own.StateGraph }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
`;

async function run(options: string[], room: string, configPath: string): Promise<unknown> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...options, "--input-type=module", "--eval", script(room, configPath)],
    { cwd: ROOT },
  );
  return JSON.parse(stdout);
}

/** The room as JavaScript, as a build would leave it. */
async function aCompiledRoom(): Promise<string> {
  const folder = await mkdtemp(join(ROOT, "node_modules", ".graphs-room-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const outfile = join(folder, "graphs.js");
  await build({
    entryPoints: [join(ROOT, "src/graphs/graphs.ts")],
    bundle: true,
    packages: "external",
    format: "esm",
    platform: "node",
    outfile,
  });
  return outfile;
}

const GRAPHS = {
  typescript: "forms/typescript-syntax.ts:graph",
  javascript: "forms/javascript.js:graph",
  promise: "forms/builders.ts:promise",
};
const LOADED = {
  texts: { typescript: "typescript", javascript: "javascript", promise: "promise" },
  // A second copy of LangGraph would cost memory and time, and break a user's own `instanceof`.
  oneCopy: true,
};

describe("graphs are loaded into the server's own process", () => {
  it("when the server runs under tsx", async () => {
    const room = join(ROOT, "src/graphs/graphs.ts");
    expect(await run(["--import", "tsx"], room, await aConfig(GRAPHS))).toEqual(LOADED);
  });

  it("when the server is compiled JavaScript and no TypeScript loader is there", async () => {
    expect(await run([], await aCompiledRoom(), await aConfig(GRAPHS))).toEqual(LOADED);
  });

  it("a promise that rejects is told, and does not end the process", async () => {
    const room = join(ROOT, "src/graphs/graphs.ts");
    const config = await aConfig({ ...GRAPHS, broken: "broken/rejects.ts:graph" });
    expect(await run(["--import", "tsx"], room, config)).toEqual({
      error: expect.stringMatching(
        /^Graph 'broken' .* can't be built: Error: The prompt could not be fetched\.$/,
      ) as string,
    });
  });

  it("a syntax error is told with its place", async () => {
    const room = join(ROOT, "src/graphs/graphs.ts");
    const file = await aFile("syntax.ts", "export const one: number = 1;\nexport const graph = = 2;\n");
    const config = await aConfig({ broken: `${file}:graph` });
    expect(await run(["--import", "tsx"], room, config)).toEqual({
      error: expect.stringMatching(/^Graph 'broken' .*syntax\.ts:2:/s) as string,
    });
  });
});
