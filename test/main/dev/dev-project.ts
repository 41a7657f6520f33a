import { rename, writeFile } from "node:fs/promises";
import { Client } from "@langchain/langgraph-sdk";
import { expect, vi } from "vitest";
import { aProject, logOf, type Project } from "../../helpers/project.ts";
import type { ServerProcess } from "../../helpers/server-process.ts";

export const GRAPHS = { agent: "./src/agent.ts:graph" };

/** A graph whose text comes from its file, a file under an alias and a JSON file; `hold` waits for a file, `ask` interrupts. */
export const agentSource = (said: string, node = "say"): string => `
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { word } from "@/word.js";
import data from "./data.json" with { type: "json" };

const State = Annotation.Root({
  wish: Annotation<string>,
  said: Annotation<string[]>({ reducer: (before, after) => [...before, ...after], default: () => [] }),
});
const say = (state) => ({ said: [${JSON.stringify(said)} + " " + word + " " + data.word + " " + (process.env.MOOD ?? "")] });
export const graph = new StateGraph(State)
  .addNode(${JSON.stringify(node)}, say)
  .addNode("go", async ({ wish }) => {
    if (wish === "ask") return { said: [interrupt("well?")] };
    while (wish?.startsWith("/") && !existsSync(wish)) await delay(20);
    return {};
  })
  .addNode("last", say)
  .addEdge(START, ${JSON.stringify(node)})
  .addEdge(${JSON.stringify(node)}, "go")
  .addEdge("go", "last")
  .addEdge("last", END)
  .compile();
`;

export interface Developed {
  project: Project;
  server: ServerProcess;
  client: Client;
  /** Writes a file like an editor: to a temporary file, which it renames. */
  edit(file: string, content: unknown): Promise<void>;
  said(graph?: string): Promise<string | undefined>;
  /** Waits until a new run gives this answer. */
  untilSaid(text: string, graph?: string): Promise<void>;
  /** Log messages that contain this text, with their reasons. */
  logged(text: string): string[];
  untilLogged(text: string, times?: number): Promise<void>;
}

/** Each edit costs a second of CPU, and other tests run at the same time. */
export const SECONDS_AT_MOST = 300;
export const PATIENCE = { timeout: 120_000, interval: 100 };

/** A project with a running `threadloom dev`. */
export const developed = async (
  files: Record<string, unknown> = {},
  argv: string[] = [],
  environment: Record<string, string> = {},
): Promise<Developed> => {
  const project = await aProject({
    "package.json": { type: "module" },
    "tsconfig.json": { compilerOptions: { paths: { "@/*": ["./src/*"] } } },
    "langgraph.json": { graphs: GRAPHS, env: ".env" },
    ".env": "MOOD=glad\n",
    "src/agent.ts": agentSource("code1"),
    "src/word.ts": 'export const word: string = "word1";',
    "src/data.json": { word: "data1" },
    ...files,
  });
  await project.linkPackages();
  const server = await project.develop(argv, environment);
  const client = new Client({ apiUrl: await server.address(), callerOptions: { maxRetries: 0 } });
  const logged: Developed["logged"] = (text) =>
    logOf(server)
      .map(({ msg, reason }) => `${String(msg)} ${String(reason ?? "")}`)
      .filter((line) => line.includes(text));
  const untilLogged: Developed["untilLogged"] = (text, times = 1) =>
    vi.waitFor(() => {
      if (logged(text).length < times) throw new Error(`'${text}' was not logged:\n${server.output()}`);
    }, PATIENCE);
  const said: Developed["said"] = async (graph = "agent") => {
    const values = (await client.runs.wait(null, graph, { input: {} })) as { said?: string[] };
    return values.said?.at(-1)?.trim();
  };
  await untilLogged("watching the graphs");
  return {
    project,
    server,
    client,
    async edit(file, content) {
      const text = typeof content === "string" ? content : JSON.stringify(content);
      await writeFile(project.path(`${file}.new`), text);
      await rename(project.path(`${file}.new`), project.path(file));
    },
    said,
    untilSaid: (text, graph) =>
      vi.waitFor(async () => expect(await said(graph).catch(String)).toBe(text), PATIENCE),
    logged,
    untilLogged,
  };
};
