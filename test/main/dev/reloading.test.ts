import { mkdir, writeFile } from "node:fs/promises";
import { expect, test, vi } from "vitest";
import { PATIENTLY } from "../../helpers/conditions.ts";
import { aProject } from "../../helpers/project.ts";
import { agentSource, developed, GRAPHS, SECONDS_AT_MOST } from "./dev-project.ts";

vi.setConfig({ testTimeout: SECONDS_AT_MOST * 1_000 });

/** `threadloom dev` in a project of its own, whose files change. */

test("new runs execute the new text of the graph, a file under an alias, JSON, and the environment's file", async () => {
  // An empty variable counts as not set.
  const { edit, said, untilSaid, client } = await developed({}, [], { MOOD: "" });
  expect(await said()).toBe("code1 word1 data1 glad");
  await edit("src/agent.ts", agentSource("code2", "speak"));
  await untilSaid("code2 word1 data1 glad");
  // The server itself loads the files after that.
  await vi.waitFor(async () => {
    const { nodes } = await client.assistants.getGraph("agent");
    expect(nodes.map(({ id }) => id)).toContain("speak");
  }, PATIENTLY);
  await edit("src/word.ts", 'export const word: string = "word2";');
  await untilSaid("code2 word2 data1 glad");
  await edit("src/data.json", { word: "data2" });
  await untilSaid("code2 word2 data2 glad");
  await edit(".env", "MOOD=sad\n");
  await untilSaid("code2 word2 data2 sad");
});

test("a project of CommonJS is reloaded, too", async () => {
  const agent = (said: string): string => `
    const { Annotation, StateGraph } = require("@langchain/langgraph");
    const { word } = require("./word.cjs");
    const State = Annotation.Root({ said: Annotation() });
    exports.graph = new StateGraph(State)
      .addNode("say", () => ({ said: [${JSON.stringify(said)} + " " + word] })).addEdge("__start__", "say").compile();`;
  const { edit, untilSaid, client } = await developed({
    "package.json": {},
    "langgraph.json": { graphs: { agent: "./src/agent.cjs:graph" } },
    "src/agent.cjs": agent("code1"),
    "src/word.cjs": 'exports.word = "word1";',
  });
  await untilSaid("code1 word1");
  await edit("src/word.cjs", 'exports.word = "word2";');
  await untilSaid("code1 word2");
  await edit(
    "src/agent.cjs",
    agent("code2").replace('"say", ()', '"speak", ()').replace('"say").c', '"speak").c'),
  );
  await untilSaid("code2 word2");
  // The server itself loads the files after that.
  await vi.waitFor(async () => {
    const { nodes } = await client.assistants.getGraph("agent");
    expect(nodes.map(({ id }) => id)).toContain("speak");
  }, PATIENTLY);
});

test("a run that streams while files are written ends in its first code, and its stream is complete", async () => {
  const { project, edit, untilSaid, client } = await developed();
  const thread = await client.threads.create();
  const held = project.path("go-on");
  const said: unknown[] = [];
  let end: string | undefined;
  const reading = (async () => {
    const stream = client.runs.stream(thread.thread_id, "agent", {
      input: { wish: held },
      streamMode: ["updates"],
    });
    for await (const { event, data } of stream) {
      if (event === "updates") said.push(data);
      end = event;
    }
  })();
  await untilSaid("code1 word1 data1 glad");
  await edit("src/agent.ts", agentSource("code2"));
  await untilSaid("code2 word1 data1 glad");
  await edit("src/agent.ts", agentSource("code3"));
  await untilSaid("code3 word1 data1 glad");
  await writeFile(held, "");
  await reading;
  expect(end).toBe("updates");
  expect(said).toEqual(
    [
      { say: { said: ["code1 word1 data1 glad"] } },
      { go: null },
      { last: { said: ["code1 word1 data1 glad"] } },
    ].map((update) => ("go" in update ? { go: expect.anything() as unknown } : update)),
  );
  const [run] = await client.runs.list(thread.thread_id);
  expect(run?.status).toBe("success");
});

test("a run that was interrupted before the change resumes in the new code", async () => {
  const { edit, untilSaid, client } = await developed();
  const thread = await client.threads.create();
  await client.runs.wait(thread.thread_id, "agent", { input: { wish: "ask" } });
  await edit("src/agent.ts", agentSource("code2"));
  await untilSaid("code2 word1 data1 glad");
  const values = await client.runs.wait(thread.thread_id, "agent", { command: { resume: "answer" } });
  expect((values as { said: string[] }).said).toEqual([
    "code1 word1 data1 glad",
    "answer",
    "code2 word1 data1 glad",
  ]);
});

test("code that can't be loaded is reported once with its place, and changes nothing; the next loadable code works", async () => {
  const { edit, said, untilSaid, logged, untilLogged, project } = await developed();
  // Makes sure that the previous code is executed somewhere.
  expect(await said()).toBe("code1 word1 data1 glad");
  await edit("src/word.ts", 'export const word: string = "word2\n');
  await untilLogged("not reloaded");
  expect(logged("not reloaded")[0]).toMatch(
    /src\/word\.ts[^]*word\.ts:1:\d+: ERROR: Unterminated string literal/,
  );
  expect(await said()).toBe("code1 word1 data1 glad");
  await edit("src/word.ts", 'export const word: string = "word3";\nthrow new Error("at load");');
  await untilLogged("at load");
  await edit("src/word.ts", "export const other = 1;");
  await untilLogged("not reloaded", 3);
  await edit("src/word.ts", 'export const word = "word4";\nprocess.exit(3);');
  await untilLogged("exited with 3");
  expect(await said()).toBe("code1 word1 data1 glad");
  await edit("src/word.ts", 'export const word: string = "word4";');
  await untilSaid("code1 word4 data1 glad");
  await untilLogged("works again");
  expect(logged("not reloaded")).toHaveLength(4);
  // A tsconfig.json is treated the same way; dev waits for its import targets, in a folder that does not exist yet.
  await edit("tsconfig.json", { compilerOptions: { paths: { "@/*": ["./later/*"] } } });
  await untilLogged("not reloaded", 5);
  expect(await said()).toBe("code1 word4 data1 glad");
  await mkdir(project.path("later"));
  await edit("later/word.ts", 'export const word: string = "word5";');
  await untilLogged("watching the graphs", 2);
  expect(logged("not reloaded")).toHaveLength(5);
});

test("a graph that langgraph.json newly names can be run, and one that it no longer names can't", async () => {
  const { edit, untilSaid, client, untilLogged } = await developed({
    "src/other.ts": agentSource("other"),
  });
  await edit("langgraph.json", { graphs: { ...GRAPHS, other: "./src/other.ts:graph" }, env: ".env" });
  await untilSaid("other word1 data1 glad", "other");
  await untilLogged("the graphs are agent, other");
  const ids = (await client.assistants.search({})).map(({ graph_id }) => graph_id);
  expect(ids.sort()).toEqual(["agent", "other"]);
  await edit("langgraph.json", { graphs: { other: "./src/other.ts:graph" }, env: ".env" });
  await untilLogged("the graphs are other");
  await expect(client.runs.wait(null, "agent", { input: {} })).rejects.toMatchObject({ status: 404 });
});

test("without a langgraph.json the message contains an example", async () => {
  const project = await aProject({});
  const server = await project.develop();
  expect(await server.exit()).toBe(1);
  expect(server.output()).toContain('"graphs": { "agent": "./src/agent.ts:graph" }');
});
