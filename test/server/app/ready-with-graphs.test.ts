import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { createServer } from "../../../src/server/embedding/server.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { aProject } from "../../helpers/project.ts";

/** A graph that a graph process has loaded as soon as the file `go` exists. */
const AGENT = `
  import { existsSync, writeFileSync } from "node:fs";
  import { setTimeout as delay } from "node:timers/promises";
  import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
  if (process.argv[1].includes("graph-process")) {
    writeFileSync(new URL("loading", import.meta.url), "");
    while (!existsSync(new URL("go", import.meta.url))) await delay(10);
  }
  export const graph = new StateGraph(Annotation.Root({}))
    .addNode("only", () => ({}))
    .addEdge(START, "only")
    .addEdge("only", END)
    .compile();
`;

test(
  "a server with graph processes answers at once, and is ready when one of them has loaded the graphs",
  { timeout: 240_000 },
  async () => {
    const project = await aProject({
      "package.json": { type: "module" },
      "langgraph.json": { graphs: { agent: "./agent.js:graph" } },
      "agent.js": AGENT,
    });
    await project.linkPackages();
    const database = await freshDatabase();
    const server = await createServer({
      config: project.path("langgraph.json"),
      databaseUrl: database.connectionString,
      port: 0,
      workers: 1,
      logLevel: "silent",
    });
    try {
      const listening = server.listen();
      await eventually("it listens", () => server.app.server.listening);
      await eventually("a process loads the graph", () => existsSync(project.path("loading")));
      expect((await server.inject("/ok")).statusCode).toBe(503);
      expect((await server.inject("/info")).statusCode).toBe(200);
      await writeFile(project.path("go"), "");
      const url = await listening;
      expect((await fetch(`${url}/ok`)).status).toBe(200);
    } finally {
      await server.close();
      await database.drop();
    }
  },
);
