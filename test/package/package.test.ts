import { afterAll, beforeAll, expect, test } from "vitest";
import {
  aFolder,
  agentText,
  packPackage,
  startIn,
  useAgent,
  type InstalledProject,
} from "./installed-project.ts";

/** Each as a project has it whose lock file is as old as its LangGraph. */
const VERSIONS: readonly [version: string, dependencies: Record<string, string>][] = [
  ["0.4", { "@langchain/langgraph": "0.4.9", "@langchain/core": "0.3.80" }],
  ["1.0", { "@langchain/langgraph": "1.0.7", "@langchain/core": "1.1.49" }],
  ["of this repository", { "@langchain/langgraph": "1.4.18", "@langchain/core": "1.2.13" }],
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

test("serves the graph of a package in a workspace that has a LangGraph of its own, and finds none beside itself", async () => {
  const project = await aFolder({ workspaces: ["packages/*"] });
  projects.push(project);
  await project.write({
    "packages/agent/package.json": {
      name: "agent",
      version: "1.0.0",
      type: "module",
      dependencies: { "@langchain/langgraph": "0.4.9", "@langchain/core": "0.3.80" },
    },
    "packages/agent/agent.js": await agentText("module"),
    "langgraph.json": { graphs: { agent: "./packages/agent/agent.js:graph" } },
  });
  await project.npm(...INSTALL, "--install-strategy=nested", "--save-dev", packed.file);
  await useAgent(() => startIn(project, {}, "--data", "data"));
});

test("answers its version within 300 ms", async () => {
  const project = await anInstalledProject({ type: "module" });
  const version = async (): Promise<number> => {
    const startedAt = performance.now();
    await project.node("node_modules/threadloom/bin/threadloom.js", "--version");
    return performance.now() - startedAt;
  };
  const times: number[] = [];
  for (let count = 0; count < 5; count += 1) times.push(await version());
  expect(Math.min(...times)).toBeLessThan(300);
});
