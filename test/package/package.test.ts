import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  aFolder,
  agentText,
  packPackage,
  startIn,
  useAgent,
  type InstalledProject,
} from "./installed-project.ts";

/** Each as in a project whose lock file is as old as its LangGraph. */
const VERSIONS: readonly [version: string, dependencies: Record<string, string>][] = [
  ["1.4.4, the oldest,", { "@langchain/langgraph": "1.4.4", "@langchain/core": "1.1.49" }],
  ["1.4.18", { "@langchain/langgraph": "1.4.18", "@langchain/core": "1.2.13" }],
  ["of this repository", { "@langchain/langgraph": "1.7.3", "@langchain/core": "1.4.0" }],
  ["newest", { "@langchain/langgraph": "1", "@langchain/core": "1" }],
];

let packed: Awaited<ReturnType<typeof packPackage>>;
const projects: InstalledProject[] = [];
const INSTALL = ["install", "--prefer-offline", "--no-audit", "--no-fund"];

const anInstalledProject = async (packageJson: object): Promise<InstalledProject> => {
  const project = await aFolder(packageJson);
  projects.push(project);
  await project.npm(...INSTALL);
  await project.npm(...INSTALL, "--save-dev", packed.file);
  return project;
};

beforeAll(async () => {
  packed = await packPackage();
});
afterAll(async () => {
  for (const project of projects) await project.remove();
  await packed?.remove();
});

test.each(
  VERSIONS.flatMap(([version, dependencies]) =>
    (["module", "commonjs"] as const).map((type) => [version, type, dependencies] as const),
  ),
)(
  "is installed beside LangGraph %s in a project of type %s, and serves its graph",
  async (_, type, dependencies) => {
    const project = await anInstalledProject({ type, dependencies });
    await project.write({
      "langgraph.json": { graphs: { agent: "./agent.js:graph" } },
      "agent.js": await agentText(type),
    });
    await useAgent(() => startIn(project, {}, "--data", "data"));
    await useAgent(() => startIn(project, {}, "--data", "data", "--workers", "1"));
  },
);

test("serves the graph of a workspace package with its own LangGraph, and finds none beside itself", async () => {
  const project = await aFolder({ workspaces: ["packages/*"] });
  projects.push(project);
  await project.write({
    "packages/agent/package.json": {
      name: "agent",
      version: "1.0.0",
      type: "module",
      dependencies: { "@langchain/langgraph": "1.4.4", "@langchain/core": "1.1.49" },
    },
    "packages/agent/agent.js": await agentText("module"),
    "langgraph.json": { graphs: { agent: "./packages/agent/agent.js:graph" } },
  });
  await project.npm(...INSTALL, "--install-strategy=nested", "--save-dev", packed.file);
  await useAgent(() => startIn(project, {}, "--data", "data"));
});

// A command's start is slow because of the modules that it loads: `npm run bench -- --only first-answer` measures the milliseconds.
test("loads nothing of the server or the database to answer its version", async () => {
  const project = await anInstalledProject({ type: "module" });
  const coverage = project.path("coverage");
  await promisify(execFile)(
    process.execPath,
    [project.path("node_modules/threadloom/bin/threadloom.js"), "--version"],
    { env: { ...process.env, NODE_V8_COVERAGE: coverage } },
  );
  const reports = await Promise.all(
    (await readdir(coverage)).map((file) => readFile(join(coverage, file), "utf8")),
  );
  const loaded = reports
    .flatMap((report) => (JSON.parse(report) as { result: { url: string }[] }).result.map(({ url }) => url))
    .filter((url) => url.startsWith("file:"));
  expect(loaded.some((url) => url.endsWith("/threadloom/dist/main.js"))).toBe(true);
  const packages = loaded.map((url) => /^.*\/node_modules\/(@[^/]+\/[^/]+|[^/]+)/.exec(url)?.[1]);
  const texts = await Promise.all(loaded.map((url) => readFile(new URL(url), "utf8")));
  const bundled = texts.flatMap((text) =>
    [...text.matchAll(/^\/\/ node_modules\/(@[^/]+\/[^/]+|[^/]+)/gm)].map(([, name]) => name),
  );
  expect([...new Set([...packages, ...bundled])].sort()).toEqual(["commander", "threadloom", "zod"]);
});
