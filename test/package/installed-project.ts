import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "vitest";
import { apiOf, type Api } from "../helpers/api.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);

/** Builds the package as for publishing; returns the path of its file, which `remove` deletes. */
export const packPackage = async (): Promise<{ file: string; remove(): Promise<void> }> => {
  const folder = await temporaryFolder();
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", folder.path], { cwd: ROOT });
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf("["))) as [{ filename: string }];
  return { file: join(folder.path, filename), remove: () => folder.remove() };
};

/** A project in a folder of its own, as its owner has it before a start. */
export interface InstalledProject {
  path(file: string): string;
  write(files: Record<string, unknown>): Promise<void>;
  npm(...argv: string[]): Promise<string>;
  node(...argv: string[]): Promise<string>;
  within(folder: string): Pick<InstalledProject, "npm" | "node">;
  remove(): Promise<void>;
}

export const aFolder = async (packageJson: object): Promise<InstalledProject> => {
  const folder = await temporaryFolder();
  const path = (file: string): string => join(folder.path, file);
  const write = async (files: Record<string, unknown>): Promise<void> => {
    for (const [name, content] of Object.entries(files)) {
      await mkdir(dirname(path(name)), { recursive: true });
      await writeFile(path(name), typeof content === "string" ? content : JSON.stringify(content));
    }
  };
  await write({ "package.json": { name: "somebodys-project", private: true, ...packageJson } });
  const within = (inner: string): Pick<InstalledProject, "npm" | "node"> => {
    const inFolder = { cwd: path(inner), maxBuffer: 10_000_000 };
    return {
      npm: async (...argv) => (await run("npm", argv, inFolder)).stdout,
      node: async (...argv) => (await run(process.execPath, argv, inFolder)).stdout,
    };
  };
  return { path, write, ...within("."), within, remove: () => folder.remove() };
};

const PACKAGES = join(ROOT, "node_modules");

/** Installs the package without a registry: its dependencies are the packages of this repository. */
export const unpackInto = async (project: InstalledProject, file: string): Promise<void> => {
  const target = project.path("node_modules/threadloom");
  await mkdir(target, { recursive: true });
  await run("tar", ["-xzf", file, "--strip-components=1", "-C", target]);
  const names = (await readdir(PACKAGES)).filter(
    (name) => !name.startsWith(".") && name !== "threadloom-graphs",
  );
  for (const name of names) await symlink(join(PACKAGES, name), project.path(`node_modules/${name}`));
};

/** The example graph, as an ES module or as CommonJS. */
export const agentText = async (kind: "module" | "commonjs"): Promise<string> => {
  const text = await readFile(new URL("./project/agent.js", import.meta.url), "utf8");
  if (kind === "module") return text;
  return text
    .replace(/^import (\{[^}]+\}) from (".+");$/gm, "const $1 = require($2);")
    .replace("export const graph", "exports.graph");
};

export interface RunningServer {
  api: Api;
  url: string;
  output(): string;
  /** Ends the server with this signal, and waits for the end. */
  end(signal: NodeJS.Signals): Promise<void>;
}

export const startIn = async (
  project: InstalledProject,
  environment: Record<string, string> = {},
  ...argv: string[]
): Promise<RunningServer> => {
  const entry = "node_modules/threadloom/bin/threadloom.js";
  const child = spawn(process.execPath, [entry, "start", "--port", "0", ...argv], {
    cwd: project.path("."),
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], LOG_FORMAT: "json", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let written = "";
  const ended = once(child, "close");
  const url = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      written += chunk.toString();
      const found = /"msg":"listening on ([^"]+)"/.exec(written)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    void ended.then(() => reject(new Error(`The server ended before it listened:\n${written}`)));
  });
  return {
    api: apiOf({ url }),
    url,
    output: () => written,
    async end(signal) {
      child.kill(signal);
      await ended;
    },
  };
};

interface State {
  next: string[];
  values: { messages: { type: string }[]; kinds: string[] };
  tasks: { interrupts: { value: unknown }[] }[];
}

/**
 * A user's actions: a run with streamed messages and a subgraph with an interrupt, `kill -9`, a restart, an answer, an interrupt in a sent
 * task, an answer, and a read of the history. Ends the server.
 */
export const useAgent = async (start: () => Promise<RunningServer>): Promise<void> => {
  let server = await start();
  try {
    const { body: thread } = await server.api.post("/threads", {});
    const path = `/threads/${(thread as { thread_id: string }).thread_id}`;
    const answer = await fetch(`${server.url}${path}/runs/stream`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        assistant_id: "agent",
        input: { messages: [{ role: "user", content: "6 * 7?" }] },
        stream_mode: ["messages", "updates"],
        stream_subgraphs: true,
      }),
    });
    const events = (await answer.text()).split("\n").flatMap((line) => /^event: (.+)$/.exec(line)?.[1] ?? []);
    expect(events).toContain("messages/partial");
    expect(events.filter((event) => event.startsWith("updates"))).toEqual([
      expect.stringMatching(/^updates\|inner:[\da-f-]{36}$/),
      "updates",
      "updates",
    ]);
    const stateOf = async (): Promise<State> => (await server.api.get(`${path}/state`)).body as State;
    const asked = await stateOf();
    expect([asked.next, asked.tasks[0]?.interrupts[0]?.value]).toEqual([["ask"], { question: "go on?" }]);
    expect(asked.values.messages.map(({ type }) => type)).toEqual(["human", "ai"]);

    await server.end("SIGKILL");
    server = await start();
    const resume = (text: string) =>
      server.api.post(`${path}/runs/wait`, { assistant_id: "agent", command: { resume: text } });
    await resume("yes");
    const sent = await stateOf();
    expect([sent.next, sent.tasks[0]?.interrupts[0]?.value]).toEqual([["worker"], { question: "really?" }]);
    await resume("sure");
    const done = await stateOf();
    expect(done.next).toEqual([]);
    const ai = expect.stringMatching(/^ai/) as string;
    expect(done.values.kinds).toEqual(["human", ai, "yes", ai, "sure"]);
    const { body: history } = await server.api.post(`${path}/history`, { limit: 50 });
    expect((history as unknown[]).length).toBeGreaterThan(3);
    expect(server.output()).not.toMatch(/"level":(50|60)/);
  } finally {
    await server.end("SIGINT");
  }
};
