import { fork } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { GraphLoadError, readGraphConfig, type GraphConfig } from "../../project/langgraph-json.ts";
import type { ProjectKeys } from "../../config/project-keys.ts";
import type { Environment } from "../own-database.ts";
import { fail, ok, warn, type Check } from "./checks.ts";
import type { GraphCheckAnswer, GraphCheckRequest } from "./graph-check.ts";

const ENTRY = fileURLToPath(new URL("./graph-check-entry.js", import.meta.url));
const OUTPUT_CHARACTERS = 2_000;

export interface CheckedProject {
  /** Undefined if it can't be read. */
  project: GraphConfig | undefined;
  checks: Check[];
}

/** Whether langgraph.json can be read. */
export const checkProject = async (file: string, given: ProjectKeys): Promise<CheckedProject> => {
  try {
    const project = await readGraphConfig(file, given);
    const graphs = `${project.entries.length} graph${project.entries.length === 1 ? "" : "s"}`;
    const checks =
      project.warning === undefined
        ? [ok("langgraph.json", `${project.path}, ${graphs}`)]
        : [warn("langgraph.json", project.warning, `Take out of ${project.path} what has no effect.`)];
    return { project, checks };
  } catch (error) {
    if (!(error instanceof GraphLoadError)) throw error;
    const advice = "Make it name your graphs, or name another file with --config.";
    return { project: undefined, checks: [fail("langgraph.json", error.message, advice)] };
  }
};

/** Loads the graphs in a process of its own: one may hang, exit, or never let go of what it has opened. */
const loadElsewhere = (
  request: GraphCheckRequest,
  environment: Environment,
  timeoutMs: number,
): Promise<GraphCheckAnswer> =>
  new Promise((resolve) => {
    const child = fork(ENTRY, [], {
      env: { ...environment },
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    let said = "";
    const keep = (chunk: Buffer): void => void (said = (said + chunk.toString()).slice(-OUTPUT_CHARACTERS));
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    const timer = setTimeout(() => {
      resolve({ failure: `They were not loaded after ${timeoutMs / 1_000} s.` });
      child.kill("SIGKILL");
    }, timeoutMs);
    child.on("message", (answer) => resolve(answer as GraphCheckAnswer));
    child.on("error", (error) => resolve({ failure: error.message }));
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ failure: `The process that loaded them ended with ${signal ?? code}. ${said}`.trim() });
    });
    child.send(request, () => undefined);
  });

/** Whether the graphs load. */
export const checkGraphs = async (
  request: GraphCheckRequest,
  environment: Environment,
  timeoutMs: number,
): Promise<Check> => {
  const answer = await loadElsewhere(request, environment, timeoutMs);
  return "ids" in answer
    ? ok("Graphs", answer.ids.join(", "))
    : fail("Graphs", answer.failure, "Mend what is named there; a start would be refused.");
};

/** What LangGraph has to be, at least and below; package.json says the same to npm. */
const SUPPORTED = [
  { name: "@langchain/langgraph", from: [0, 4], below: 2 },
  { name: "@langchain/core", from: [0, 3], below: 2 },
] as const;

/** The version that the files of a folder get; as Node finds it, and without asking what the package exports. */
const installedVersion = async (name: string, folder: string): Promise<string | undefined> => {
  for (let above = folder; ; above = dirname(above)) {
    const text = await readFile(join(above, "node_modules", name, "package.json"), "utf8").catch(
      () => undefined,
    );
    if (text !== undefined) return (JSON.parse(text) as { version?: string }).version;
    if (dirname(above) === above) return undefined;
  }
};

/** Whether the project's LangGraph is one that this server works with. */
export const checkVersions = (folder: string): Promise<Check[]> =>
  Promise.all(
    SUPPORTED.map(async ({ name, from: [fromMajor, fromMinor], below }) => {
      const range = `from ${fromMajor}.${fromMinor} on, and below ${below}.0`;
      const title = name.replace("@langchain/", "");
      const version = await installedVersion(name, folder);
      if (version === undefined)
        return fail(title, `${name} is not installed for ${folder}`, `npm install ${name}`);
      const [major = 0, minor = 0] = version.split(".").map(Number);
      const isOld = major < fromMajor || (major === fromMajor && minor < fromMinor);
      return isOld || major >= below
        ? fail(title, `${name} ${version}; supported is what is ${range}`, `npm install ${name}@latest`)
        : ok(title, `${name} ${version}`);
    }),
  );
