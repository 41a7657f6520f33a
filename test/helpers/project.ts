import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { freshDatabase } from "./database.ts";
import { spawnServer, type ServerProcess } from "./server-process.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** The folder of a user of the server, deleted after the test. */
export interface Project {
  path(file: string): string;
  /** Links this repository's packages, as if they were installed. */
  linkPackages(): Promise<void>;
  /** Starts the server with the project's langgraph.json, on a database of its own and a free port. */
  start(argv?: string[], environment?: Record<string, string>): Promise<ServerProcess>;
  /** Starts `threadloom dev` in the same way. */
  develop(argv?: string[], environment?: Record<string, string>): Promise<ServerProcess>;
  /** Starts the server and waits for the end of the failing start; returns its output. */
  refusal(argv?: string[], environment?: Record<string, string>): Promise<string>;
}

const PACKAGES = fileURLToPath(new URL("../../node_modules", import.meta.url));

/** The absolute path of a fixture, for a `langgraph.json` elsewhere. */
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

/** @param files name -> text, or a value that becomes JSON */
export const aProject = async (files: Record<string, unknown>): Promise<Project> => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const path = (file: string): string => join(folder.path, file);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(path(name)), { recursive: true });
    await writeFile(path(name), typeof content === "string" ? content : JSON.stringify(content));
  }
  const startBy = async (
    command: "start" | "dev",
    argv: string[] = [],
    environment: Record<string, string> = {},
  ) => {
    const database = await freshDatabase();
    const server = spawnServer(
      ["--config", path("langgraph.json"), "--port", "0", ...argv],
      { DATABASE_URL: database.connectionString, ...environment },
      undefined,
      command,
    );
    onTestFinished(async () => {
      await server.kill();
      await database.drop();
    });
    return server;
  };
  const start: Project["start"] = (argv, environment) => startBy("start", argv, environment);
  return {
    path,
    linkPackages: () => symlink(PACKAGES, path("node_modules")),
    start,
    develop: (argv, environment) => startBy("dev", argv, environment),
    async refusal(argv, environment) {
      const server = await start(argv, environment);
      if ((await server.exit()) !== 1) throw new Error(`The start was not refused:\n${server.output()}`);
      return server.output();
    },
  };
};

export const logOf = (server: ServerProcess): Record<string, unknown>[] =>
  server
    .output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
