import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { aProject } from "../helpers/project.ts";
import { aConfig } from "./helpers.ts";

/** The test runner has its own module loader, so the two real ways of starting run in processes of their own. */
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

/** The room as JavaScript, like a build's result. */
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

  it("when the server is compiled JavaScript without a TypeScript loader", async () => {
    expect(await run([], await aCompiledRoom(), await aConfig(GRAPHS))).toEqual(LOADED);
  });

  it("an unhandled rejection is logged, and does not end the process", async () => {
    const room = join(ROOT, "src/graphs/graphs.ts");
    const config = await aConfig({ ...GRAPHS, broken: "broken/rejects.ts:graph" });
    expect(await run(["--import", "tsx"], room, config)).toEqual({
      error: expect.stringMatching(
        /^Graph 'broken' .* can't be built: Error: The prompt could not be fetched\.$/m,
      ) as string,
    });
  });

  const PLACES: [string, Record<string, string>, string][] = [
    [
      "an exception",
      {
        "graph.ts":
          'import { models } from "./models.ts";\n\ninterface A {\n  a: string;\n}\nexport const graph = models();\n',
        "models.ts": 'type T = number;\nexport function models(): T {\n\tthrow new RangeError("none");\n}\n',
      },
      "RangeError: none.\n    at models (FOLDER/models.ts:3:8)\n    at <anonymous> (FOLDER/graph.ts:6:22)",
    ],
    [
      "a syntax error",
      { "graph.ts": "export const one: number = 1;\nexport const graph = = 2;\n" },
      'FOLDER/graph.ts:2:21: ERROR: Unexpected "=".',
    ],
    [
      "an import of what is not exported",
      {
        "graph.ts": '\nimport { model } from "./models.ts";\nexport const graph = model;\n',
        "models.ts": "export const models = 1;\n",
      },
      "\n    at FOLDER/graph.ts:2",
    ],
    [
      "a missing package",
      { "graph.ts": 'import { model } from "not-installed";\nexport const graph = model;\n' },
      "Cannot find package 'not-installed' imported from FOLDER/graph.ts.",
    ],
  ];
  it.each(PLACES)("%s is logged with its place", async (_what, files, place) => {
    const project = await aProject({
      "package.json": { type: "module" },
      "langgraph.json": { graphs: { broken: "./graph.ts:graph" } },
      ...files,
    });
    const room = join(ROOT, "src/graphs/graphs.ts");
    const { error } = (await run(["--import", "tsx"], room, project.path("langgraph.json"))) as {
      error: string;
    };
    expect(error).toMatch(/^Graph 'broken' \(.*graph\.ts\) can't be loaded: /);
    expect(error.endsWith(place.replaceAll("FOLDER", project.path("."))), error).toBe(true);
  });
});
