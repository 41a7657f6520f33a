import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type * as WorkflowParser from "@actions/workflow-parser";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { build } from "esbuild";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";

/** The files for GitHub, which ignores a wrong one, or refuses it after it has landed. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const textOf = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** The errors that a published schema finds, each with its place. */
const faultsBy = (schema: string, text: string): string[] => {
  const ajv = new Ajv({ strict: false, allErrors: true });
  addFormats.default(ajv);
  const validate = ajv.compile(JSON.parse(textOf(`test/github/schemas/${schema}.json`)) as object);
  if (validate(parse(text))) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
};

let parser: typeof WorkflowParser;
beforeAll(async () => {
  // Node can't load the package, because it imports JSON without the attribute that Node requires.
  const { outputFiles } = await build({
    stdin: { contents: 'export * from "@actions/workflow-parser"', resolveDir: ROOT },
    bundle: true,
    write: false,
    format: "cjs",
    platform: "node",
  });
  const loaded = { exports: {} };
  new Function("module", "require", outputFiles[0]!.text)(loaded, createRequire(import.meta.url));
  parser = loaded.exports as typeof WorkflowParser;
});

/** The errors that GitHub's own parser finds, including those of expressions. */
const faultsOfWorkflow = (name: string, content: string): string[] => {
  const { context } = parser.parseWorkflow({ name, content }, new parser.NoOperationTraceWriter());
  return context.errors.getErrors().map(String);
};

interface Workflow {
  permissions: unknown;
  concurrency: unknown;
  jobs: Record<
    string,
    {
      "timeout-minutes"?: unknown;
      permissions?: unknown;
      strategy?: { matrix?: { node?: number[]; suite?: { command: string }[] } };
      steps: { uses?: string; with?: Record<string, unknown> }[];
    }
  >;
}

const workflows = readdirSync(join(ROOT, ".github/workflows"));

describe.each(workflows)("the workflow %s", (name) => {
  const text = textOf(`.github/workflows/${name}`);
  const workflow = parse(text) as Workflow;

  test("is valid for GitHub's parser, which finds a wrong key and a wrong expression", () => {
    expect(faultsOfWorkflow(name, text)).toEqual([]);
    expect(faultsOfWorkflow(name, text.replace("runs-on", "run-on"))).not.toEqual([]);
    expect(faultsOfWorkflow(name, text.replaceAll("matrix.node", "matrx.node"))).not.toEqual([]);
  });

  test("has read permission only, a time limit, and is cancelled by a newer run", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    expect(workflow.concurrency).toMatchObject({ "cancel-in-progress": true });
    for (const job of Object.values(workflow.jobs)) {
      expect(job["timeout-minutes"]).toBeDefined();
      expect(job.permissions).toBeUndefined();
    }
  });

  test("pins the version of each action, and keeps no token in the checkout", () => {
    const used = Object.values(workflow.jobs).flatMap(({ steps }) => steps.filter(({ uses }) => uses));
    for (const { uses } of used) expect(uses).toMatch(/^[\w-]+\/[\w-]+@v\d+\.\d+\.\d+$/);
    for (const step of used.filter(({ uses }) => uses!.startsWith("actions/checkout@")))
      expect(step.with).toMatchObject({ "persist-credentials": false });
  });
});

test("all suites run on each supported version of Node", () => {
  const { tests } = (parse(textOf(".github/workflows/tests.yml")) as Workflow).jobs;
  const { scripts, engines } = JSON.parse(textOf("package.json")) as {
    scripts: Record<string, string>;
    engines: { node: string };
  };
  const { node, suite } = tests!.strategy!.matrix!;
  expect(textOf("SECURITY.md")).toContain(`Node ${node!.slice(0, -1).join(", ")} and ${node!.at(-1)}`);
  expect(engines.node).toMatch(new RegExp(`^>=${node![0]}\\.`));
  const commands = suite!.map(({ command }) => command);
  expect(commands).toEqual([".ci/run", "npm run test:package", "npm run test:console"]);
  for (const command of commands.slice(1)) expect(scripts).toHaveProperty([command.replace("npm run ", "")]);
});

describe("updates of dependencies", () => {
  const text = textOf(".github/dependabot.yml");

  test("are valid for the schema, which finds a wrong interval", () => {
    expect(faultsBy("dependabot-2.0", text)).toEqual([]);
    expect(faultsBy("dependabot-2.0", text.replaceAll("weekly", "sometimes"))).not.toEqual([]);
  });

  test("come weekly in groups, with LangGraph in a group of its own", () => {
    const { updates } = parse(text) as {
      updates: {
        "package-ecosystem": string;
        schedule: { interval: string };
        groups: Record<string, { patterns?: string[]; "exclude-patterns"?: string[] }>;
      }[];
    };
    expect(updates.map((update) => update["package-ecosystem"])).toEqual(["npm", "github-actions"]);
    for (const { schedule } of updates) expect(schedule.interval).toBe("weekly");
    const { langgraph, ...others } = updates[0]!.groups;
    expect(langgraph!.patterns).toEqual(["@langchain/*"]);
    for (const group of Object.values(others)) expect(group["exclude-patterns"]).toEqual(langgraph!.patterns);
  });
});

describe("issues", () => {
  const forms = readdirSync(join(ROOT, ".github/ISSUE_TEMPLATE")).filter((name) => name !== "config.yml");

  test.each(forms)("the form %s is valid for the schema, which finds a wrong type", (name) => {
    const text = textOf(`.github/ISSUE_TEMPLATE/${name}`);
    expect(faultsBy("github-issue-forms", text)).toEqual([]);
    expect(faultsBy("github-issue-forms", text.replace("type: textarea", "type: text"))).not.toEqual([]);
  });

  test("the chooser is valid for the schema", () => {
    const text = textOf(".github/ISSUE_TEMPLATE/config.yml");
    expect(faultsBy("github-issue-config", text)).toEqual([]);
    expect(faultsBy("github-issue-config", `${text}blank: true\n`)).not.toEqual([]);
  });
});
