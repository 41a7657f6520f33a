import { execFile } from "node:child_process";
import { readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Script } from "node:vm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase } from "../helpers/database.ts";
import {
  aFolder,
  agentText,
  packPackage,
  startIn,
  unpackInto,
  useAgent,
  type InstalledProject,
} from "../package/installed-project.ts";
import { newProjects } from "../package/new-projects.ts";

/** The package as published, installed in projects without a registry. More in `npm run test:package`. */

let packed: Awaited<ReturnType<typeof packPackage>>;
const projects: InstalledProject[] = [];

const aProject = async (packageJson: object, files: Record<string, unknown>): Promise<InstalledProject> => {
  const project = await aFolder(packageJson);
  projects.push(project);
  await unpackInto(project, packed.file);
  await project.write(files);
  return project;
};

beforeAll(async () => {
  packed = await packPackage();
});

afterAll(async () => {
  for (const project of projects) await project.remove();
  await packed?.remove();
});

test.each([
  ["JavaScript, of type module", { type: "module" }, "agent.js", "module"],
  ["JavaScript, of type commonjs", { type: "commonjs" }, "agent.js", "commonjs"],
  ["TypeScript, of no type", {}, "agent.ts", "module"],
] as const)(
  "a project (%s) serves its graph, whose own classes are restored from storage after a kill -9",
  async (_, packageJson, file, kind) => {
    const project = await aProject(packageJson, {
      "langgraph.json": { graphs: { agent: `./${file}:graph` } },
      [file]: await agentText(kind),
    });
    const database = await freshDatabase();
    try {
      // Read from source of only one kind, because each reading takes seconds of CPU.
      const SOURCE_SCHEMAS = `${kind === "module" && file === "agent.ts"}`;
      await useAgent(() => startIn(project, { DATABASE_URL: database.connectionString, SOURCE_SCHEMAS }));
    } finally {
      await database.drop();
    }
  },
);

test("the code that asks for the key in the reference page of the API is a script, and not a module", async () => {
  const project = await aProject({}, {});
  const text = await readFile(project.path("node_modules/threadloom/dist/http/docs-key.js"), "utf8");
  expect(text).toContain("docsSignIn");
  // Parsed only: a file with exports is no script, and the page would not load it.
  expect(() => new Script(text)).not.toThrow();
});

test("each module is in one file of the package, so programs and exports in one process share its state", async () => {
  const project = await aProject({}, {});
  const dist = project.path("node_modules/threadloom/dist");
  const files = (await readdir(dist, { recursive: true })).filter(
    (file) => file.endsWith(".js") && !file.startsWith("page"),
  );
  const texts = await Promise.all(files.map((file) => readFile(join(dist, file), "utf8")));
  const modules = texts.flatMap((text) => [
    ...new Set([...text.matchAll(/^\/\/ ((?:src|node_modules)\/\S+)$/gm)].map(([, name]) => name!)),
  ]);
  expect(modules).toContain("src/server/embedding/server.ts");
  expect(modules.filter((name, index) => modules.indexOf(name) < index)).toEqual([]);
});

test("the package has only the declarations that its exports need", async () => {
  const project = await aProject({}, {});
  const dist = project.path("node_modules/threadloom/dist");
  const files = await readdir(dist, { recursive: true });
  expect(files.filter((file) => file.endsWith(".d.ts")).sort()).toEqual([
    "server/custom-app/environment.d.ts",
    "server/embedding/auth.d.ts",
    "server/embedding/server.d.ts",
    "server/embedding/testing.d.ts",
  ]);
});

test("npm pack prints the name of the package's file instead of a list of all files", async () => {
  const { npm_config_loglevel: _, ...env } = process.env;
  const { stdout, stderr } = await promisify(execFile)("npm", ["pack", "--dry-run", "--ignore-scripts"], {
    cwd: fileURLToPath(new URL("../../", import.meta.url)),
    env,
  });
  expect(stdout + stderr).toMatch(/^threadloom-[\d.]+\.tgz\n$/);
});

test("a graph in JavaScript imports a package of its workspace in TypeScript", async () => {
  const project = await aProject(
    { type: "module", workspaces: ["packages/*"] },
    {
      "langgraph.json": { graphs: { agent: "./agent.js:graph" } },
      "tsconfig.json": {},
      "agent.js": `
        import { Annotation, START, StateGraph } from "@langchain/langgraph";
        import { greetingOf, Tone } from "tools";
        export const graph = new StateGraph(Annotation.Root({ text: Annotation() }))
          .addNode("greet", ({ text }) => ({ text: greetingOf(text, Tone.Loud) }))
          .addEdge(START, "greet");`,
      "packages/tools/package.json": {
        name: "tools",
        type: "module",
        exports: { ".": { import: "./src/index.ts" } },
      },
      "packages/tools/src/index.ts": 'export * from "./greeting";',
      "packages/tools/src/greeting.ts": `
        export enum Tone { Quiet, Loud }
        export const greetingOf = (name: string, tone: Tone): string =>
          tone === Tone.Loud ? name.toUpperCase() : name;`,
    },
  );
  await symlink("../packages/tools", project.path("node_modules/tools"));
  const database = await freshDatabase();
  try {
    const environment = { DATABASE_URL: database.connectionString, SOURCE_SCHEMAS: "false" };
    const server = await startIn(project, environment, "--workers", "1");
    try {
      const { body } = await server.api.post("/runs/wait", {
        assistant_id: "agent",
        input: { text: "ann" },
      });
      expect(body).toEqual({ text: "ANN" });
    } finally {
      await server.end("SIGINT");
    }
  } finally {
    await database.drop();
  }
});

test("a project in TypeScript has its server, its tests and its types", async () => {
  const project = await aProject(
    { type: "module" },
    {
      "langgraph.json": { graphs: { agent: "./src/agent.ts:graph" } },
      "tsconfig.json": {
        extends: "./tsconfig.base.json",
        compilerOptions: { paths: { "@/*": ["./src/*"] } },
      },
      "tsconfig.base.json": {
        compilerOptions: {
          strict: true,
          noEmit: true,
          module: "nodenext",
          target: "es2022",
          types: [],
          skipLibCheck: true,
          lib: ["ES2023", "DOM"],
        },
      },
      "src/agent.ts": `
        import { Annotation, START, StateGraph } from "@langchain/langgraph";
        import { greeting } from "@/greeting.js";
        const State = Annotation.Root({ text: Annotation<string> });
        export const graph = new StateGraph(State)
          .addNode("greet", ({ text }) => {
            if (text === "fail") throw new Error("wanted");
            return { text: greeting };
          })
          .addEdge(START, "greet");`,
      "src/greeting.ts": 'export const greeting: string = "found by its path";',
      "test.ts": `
        import { createServer, type AppAuth, type AppEnvironment, type ServerOptions } from "threadloom";
        import { startTestServer } from "threadloom/testing";
        const options: ServerOptions = { port: 0 };
        export const userOf = ({ auth }: AppEnvironment): AppAuth["user"] | undefined => auth?.user;
        const server = await startTestServer();
        const answer = await fetch(server.url + "/runs/wait", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ assistant_id: "agent", input: { text: "" } }),
        });
        console.log(JSON.stringify([await answer.json(), server.graphs, (await server.inject("/ok")).statusCode]));
        await server.close();
        // @ts-expect-error: there is no such option
        await createServer({ ...options, prot: 1, config: "nowhere.json" }).catch((error: Error) => console.log(error.message));`,
      "plain.mjs": 'import { register } from "tsx/esm/api"; register(); await import("./test.ts");',
    },
  );
  const out = await project.node("plain.mjs");
  const [answer, refusal] = out.trim().split("\n").slice(-2);
  expect(JSON.parse(answer!)).toEqual([{ text: "found by its path" }, ["agent"], 200]);
  expect(refusal).toContain("nowhere.json");
  await project.node("node_modules/typescript/bin/tsc", "--allowImportingTsExtensions");

  const failing =
    'import("threadloom").then((m) => m.createServer({ config: "no.json" })).catch((e) => console.log(e.stack))';
  expect(await project.node("--enable-source-maps", "-e", failing)).toMatch(
    /src\/graphs\/project\/langgraph-json\.ts:\d+:\d+/,
  );

  const version = await project.node("node_modules/threadloom/bin/threadloom.js", "--version");
  expect(version).toMatch(/^\d+\.\d+\.\d+\n$/);
});

// `npm run test:package` tests all templates in both languages.
newProjects(["agent"], ["typescript"], aProject);
