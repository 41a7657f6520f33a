import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { createExtractionCache, digestOf } from "../../../src/graphs/source/cache.ts";
import {
  createSourceReader,
  requestOf,
  type SourceReaderOptions,
} from "../../../src/graphs/source/source-schemas.ts";
import { readGraphConfig } from "../../../src/graphs/project/langgraph-json.ts";
import { startTestServer } from "../../helpers/app.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { spawnServer } from "../../helpers/server-process.ts";
import { loadConfig, logger } from "../helpers.ts";
import { aProject, graphText, SCHEMA_PROCESS } from "./project.ts";

const LANGGRAPH_JSON = JSON.stringify({ graphs: { one: "./one.ts:graph" } });
/** The draft of each document. */
const $schema = "http://json-schema.org/draft-07/schema#";

/** A program that replaces the source reader: it records its start, and then does what the test asks. */
const STAND_IN = `
import { appendFileSync } from "node:fs";
appendFileSync(new URL("./starts", import.meta.url), "x");
`;
const ANSWERS = `process.once("message", () => process.send({
  graphs: [["one", [["", { state: { value: { type: "string" } }, input: {}, output: {}, context: {} }]]]],
  failures: [],
  origins: [],
  isComplete: true,
}, () => process.exit(0)));`;
const DIES = 'process.kill(process.pid, "SIGKILL");';
const HANGS = 'process.on("message", () => {});';

/** A machine that is busy with other tests may take long. */
const PATIENCE_MS = 100_000;

const aReader = async (program: string, options: Partial<SourceReaderOptions> = {}) => {
  const folder = await aProject({
    "langgraph.json": LANGGRAPH_JSON,
    "one.ts": graphText("string"),
    "process.mjs": STAND_IN + program,
  });
  const reader = createSourceReader({
    entry: pathToFileURL(join(folder, "process.mjs")),
    configPath: join(folder, "langgraph.json"),
    cacheFolder: join(folder, "cache"),
    patienceMs: PATIENCE_MS,
    logger,
    ...options,
  });
  onTestFinished(() => reader.close());
  const starts = async (): Promise<number> =>
    (await readFile(join(folder, "starts"), "utf8").catch(() => "")).length;
  return { reader, starts };
};

test("concurrent questions share one process, and later ones need none", async () => {
  const { reader, starts } = await aReader(ANSWERS);
  const answers = await Promise.all(["one", "one", "other"].map((id) => reader.of(id)));
  expect(answers.map((answer) => answer?.get("")?.state)).toEqual([
    { value: { type: "string" } },
    { value: { type: "string" } },
    undefined,
  ]);
  expect(answers[2]?.size).toBe(0);
  await reader.of("one");
  expect(await starts()).toBe(1);
});

test("a killed process gives no answer, and is not started for each question", async () => {
  const { reader, starts } = await aReader(DIES);
  expect(await reader.of("one")).toBeUndefined();
  expect(await reader.of("one")).toBeUndefined();
  expect(await starts()).toBe(1);
});

test("a question waits for a limited time, and the process ends with the reader", async () => {
  const { reader, starts } = await aReader(HANGS, { patienceMs: 50 });
  expect(await reader.of("one")).toBeUndefined();
  const waiting = reader.of("one");
  reader.close();
  expect(await waiting).toBeUndefined();
  expect(await starts()).toBeLessThanOrEqual(1);
});

test("a missing program causes no error for a question", async () => {
  const { reader } = await aReader("", { entry: new URL("file:///no/such/program.js") });
  expect(await reader.of("one")).toBeUndefined();
});

test("only inputs that nothing else describes count as untyped", async () => {
  const state = (text: string): string =>
    `import { Annotation, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
     import { z } from "zod";
     export const graph = new StateGraph(${text}).addNode("a", () => ({})).addEdge(START, "a").compile();`;
  const folder = await aProject({
    "langgraph.json": JSON.stringify({
      graphs: {
        chat: "./chat.ts:graph",
        schema: "./schema.ts:graph",
        typed: "./typed.ts:graph",
        untyped: "./untyped.js:graph",
      },
    }),
    "chat.ts": state("MessagesAnnotation"),
    "schema.ts": state("z.object({ anything: z.any() })"),
    "typed.ts": state(
      "Annotation.Root({ ...MessagesAnnotation.spec, topic: Annotation<string>(), n: Annotation<1>() })",
    ),
    "untyped.js": state("Annotation.Root({ topic: Annotation() })"),
  });
  const configPath = join(folder, "langgraph.json");
  const graphs = await loadConfig(configPath);
  expect(graphs.ids.filter((id) => graphs.hasUntypedInputs(id))).toEqual(["typed", "untyped"]);
});

test("the loop turns while source is read; a restart needs no process; a change of the source does", async () => {
  const folder = await aProject({ "langgraph.json": LANGGRAPH_JSON, "one.ts": graphText('"a" | "b"') });
  const configPath = join(folder, "langgraph.json");
  const cacheFolder = join(folder, "cache");
  const started = async (entry: URL) =>
    await loadConfig(configPath, {
      openSource: () =>
        createSourceReader({ entry, configPath, cacheFolder, patienceMs: PATIENCE_MS, logger }),
    });
  const noProcess = new URL("file:///no/such/program.js");
  const choice = { $schema, type: "object", properties: { value: { type: "string", enum: ["a", "b"] } } };
  const unknown = { $schema, type: "object", properties: { value: {} } };

  const first = await started(SCHEMA_PROCESS);
  let turns = 0;
  const turning = setInterval(() => (turns += 1), 5);
  const { input_schema, state_schema, output_schema } = await first.schemas("one");
  clearInterval(turning);
  expect([input_schema, state_schema, output_schema]).toEqual([choice, choice, choice]);
  // Reading takes at least a second. A blocked loop would have no turn in between.
  expect(turns).toBeGreaterThan(20);

  const second = await started(noProcess);
  expect((await second.schemas("one")).input_schema).toEqual(choice);

  await writeFile(join(folder, "one.ts"), graphText("number"));
  const third = await started(noProcess);
  expect((await third.schemas("one")).input_schema).toEqual(unknown);
});

test("a server uses the schemas that `npm run schemas` stored for an image, and starts no process", async () => {
  const folder = await aProject({ "langgraph.json": LANGGRAPH_JSON, "one.ts": graphText("number") });
  const configPath = join(folder, "langgraph.json");
  const { stdout } = await promisify(execFile)("npm", ["run", "schemas", "--", "--config", configPath], {
    cwd: fileURLToPath(new URL("../../../", import.meta.url)),
  });
  expect(stdout).toContain("Kept the schemas of 1 of 1 graphs");
  const entry = new URL("file:///no/such/program.js");
  const graphs = await loadConfig(configPath, {
    openSource: () =>
      createSourceReader({
        entry,
        configPath,
        cacheFolder: join(folder, ".threadloom"),
        patienceMs: PATIENCE_MS,
        logger,
      }),
  });
  expect((await graphs.schemas("one")).input_schema).toEqual({
    $schema,
    type: "object",
    properties: { value: { type: "number" } },
  });
});

test("stored schemas are used if the source can't be read, without the packages of types, and not for another source", async () => {
  const folder = await aProject({ "langgraph.json": LANGGRAPH_JSON, "one.ts": graphText("number") });
  const configPath = join(folder, "langgraph.json");
  const cacheFolder = join(folder, "cache");
  const source = join(folder, "one.ts");
  const gone = join(folder, "node_modules/@types/gone/package.json");
  const { entries } = await readGraphConfig(configPath);
  const schemas = { state: { value: { type: "string" } }, input: {}, output: {}, context: {} };
  await createExtractionCache([cacheFolder]).write(requestOf(folder, entries), {
    graphs: [["one", [["", schemas]]]],
    failures: [],
    origins: [
      [source, digestOf(await readFile(source, "utf8"))],
      [gone, digestOf("{}")],
    ],
    isComplete: true,
  });
  const stateRead = async (entry: URL | undefined) => {
    const reader = createSourceReader({ entry, configPath, cacheFolder, patienceMs: PATIENCE_MS, logger });
    onTestFinished(() => reader.close());
    return (await reader.of("one"))?.get("")?.state;
  };
  expect(await stateRead(undefined)).toEqual({ value: { type: "string" } });
  // A readable source is read again, because the package may have been replaced.
  expect(await stateRead(new URL("file:///no/such/program.js"))).toBeUndefined();
  await writeFile(source, graphText("boolean"));
  expect(await stateRead(undefined)).toBeUndefined();
});

test("an answer from before the source was read is marked as provisional, and the later one is not", async () => {
  const folder = await aProject({
    "langgraph.json": LANGGRAPH_JSON,
    "one.ts": graphText("string"),
    "process.mjs": `
      import { existsSync } from "node:fs";
      const isLetGo = () => existsSync(new URL("./go", import.meta.url));
      while (!isLetGo()) await new Promise((next) => setTimeout(next, 20));
      ${ANSWERS}
    `,
  });
  const configPath = join(folder, "langgraph.json");
  const graphs = await loadConfig(configPath, {
    openSource: () =>
      createSourceReader({
        entry: pathToFileURL(join(folder, "process.mjs")),
        configPath,
        cacheFolder: join(folder, ".threadloom"),
        patienceMs: 10,
        logger,
      }),
  });
  graphs.readAhead();
  expect(await graphs.schemas("one")).toMatchObject({
    provisional: true,
    state_schema: { properties: { value: {} } },
  });
  await writeFile(join(folder, "go"), "");
  await expect
    .poll(async () => await graphs.schemas("one"), { timeout: PATIENCE_MS })
    .toMatchObject({ state_schema: { properties: { value: { type: "string" } } } });
  expect(await graphs.schemas("one")).not.toHaveProperty("provisional");
  // The file is in a folder that git ignores.
  expect(await readFile(join(folder, ".threadloom/.gitignore"), "utf8")).toBe("*\n");
});

test("a failed read is not repeated", async () => {
  const folder = await aProject({ "langgraph.json": LANGGRAPH_JSON, "one.ts": graphText("string") });
  const configPath = join(folder, "langgraph.json");
  const entry = new URL("file:///no/such/program.js");
  const cacheFolder = join(folder, "cache");
  const graphs = await loadConfig(configPath, {
    openSource: () => createSourceReader({ entry, configPath, cacheFolder, patienceMs: PATIENCE_MS, logger }),
  });
  expect(await graphs.schemas("one")).not.toHaveProperty("provisional");
});

test("the schemas of the newest source are kept, and a damaged file is ignored", async () => {
  const folder = await aProject({ "langgraph.json": LANGGRAPH_JSON });
  const cacheFolder = join(folder, "cache");
  const source = join(folder, "one.ts");
  const cache = createExtractionCache([cacheFolder]);
  const request = { folder, entries: [{ id: "one", file: source, exportName: "graph" }] };
  const extractionOf = (text: string) => ({
    graphs: [],
    failures: [],
    origins: [[source, digestOf(text)]] as [string, string][],
    isComplete: true,
  });
  for (const text of ["5", "6"]) await cache.write(request, extractionOf(text));
  const [kept = "", ...others] = await readdir(cacheFolder);
  expect(others).toEqual([]);
  await writeFile(source, "5");
  expect(await cache.read(request)).toBeUndefined();
  await writeFile(source, "6");
  expect(await cache.read(request)).toEqual(extractionOf("6"));
  await writeFile(join(cacheFolder, kept), "{");
  expect(await cache.read(request)).toBeUndefined();
  await cache.write(request, extractionOf("6"));
  expect(await cache.read(request)).toEqual(extractionOf("6"));
});

test("'threadloom start' reads the source without a question", async () => {
  const folder = await aProject({ "langgraph.json": LANGGRAPH_JSON, "one.ts": graphText("string") });
  const data = join(folder, ".threadloom");
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  const server = spawnServer(["--config", join(folder, "langgraph.json"), "--port", "0"], {
    DATABASE_URL: database.connectionString,
    THREADLOOM_DATA: data,
    SOURCE_SCHEMAS: "true",
  });
  onTestFinished(() => server.kill());
  await server.address();
  const kept = async (): Promise<string[]> => await readdir(data).catch(() => []);
  await expect
    .poll(kept, { timeout: PATIENCE_MS })
    .toContainEqual(expect.stringMatching(/^schemas-.*\.json$/));
});

test("the log reports once that schemas can't be cached", async () => {
  const { logger, lines } = listeningLogger();
  const { reader } = await aReader(ANSWERS, { cacheFolder: "/dev/null/cache", logger });
  await reader.of("one");
  await reader.of("one");
  const logged = lines.filter((line) => line.includes("can't be cached"));
  expect(logged).toHaveLength(1);
  expect(JSON.parse(logged[0]!)).toMatchObject({ level: 40 });
});

test("servers with and without graph processes return the fields of graphs and subgraphs", async () => {
  const folder = await aProject({
    "langgraph.json": JSON.stringify({ graphs: { outer: "./outer.ts:graph" } }),
    "outer.ts": `
      import { Annotation, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
      const Inner = Annotation.Root({ depth: Annotation<number> });
      const inner = new StateGraph(Inner).addNode("work", () => ({})).addEdge(START, "work").compile();
      const State = Annotation.Root({ ...MessagesAnnotation.spec, depth: Annotation<number> });
      export const graph = new StateGraph(State, Annotation.Root({ model: Annotation<"small" | "large"> }))
        .addNode("inner", inner)
        .addEdge(START, "inner")
        .compile();
    `,
  });
  const model = { properties: { model: { type: "string", enum: ["small", "large"] } } };
  // The second server finds the schemas that the first one stored.
  for (const graphProcesses of [1, 0]) {
    const server = await startTestServer({
      graphConfigFile: join(folder, "langgraph.json"),
      sourceSchemas: true,
      dataFolder: join(folder, ".threadloom"),
      graphProcesses,
    });
    try {
      const schemas = async (): Promise<unknown> =>
        (await server.client.get("/assistants/outer/schemas")).body;
      // On a busy machine the first answers may come without the source.
      await expect.poll(schemas, { timeout: PATIENCE_MS }).toMatchObject({
        graph_id: "outer",
        input_schema: { properties: { messages: { langgraph_type: "messages" }, depth: { type: "number" } } },
        context_schema: model,
        config_schema: model,
      });
      const subgraphs = await server.client.get("/assistants/outer/subgraphs?recurse=true");
      expect(subgraphs.body).toMatchObject({
        inner: { state_schema: { properties: { depth: { type: "number" } } } },
      });
    } finally {
      await server.close();
    }
  }
});
