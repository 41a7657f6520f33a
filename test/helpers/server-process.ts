import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { programOf } from "./compiled-package.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Like src/graphs/langgraph-ahead.js: loading it through the TypeScript loader of graphs takes half a second of CPU more. */
const AHEAD = ["--import", import.meta.resolve("@langchain/langgraph")];

export interface ServerProcess {
  child: ChildProcess;
  output(): string;
  /** Waits until the server listens; rejects with its output if it ends instead. */
  address(): Promise<string>;
  /** Waits for the end; resolves with the exit code or the signal. */
  exit(): Promise<number | NodeJS.Signals>;
  kill(): Promise<void>;
}

/**
 * Starts the server (or another `entry`, or with another `command`) like `npm start`, with these arguments and, in addition to PATH and
 * HOME, this environment.
 */
export const spawnServer = (
  argv: string[],
  environment: Record<string, string> = {},
  entry?: string,
  command: "start" | "dev" = "start",
): ServerProcess => {
  // The process of `dev` loads no graph, only its child does.
  const ownProgram = [...(command === "start" ? AHEAD : []), programOf(), command];
  const program = entry === undefined ? ownProgram : ["--import", "tsx", entry];
  const child = spawn(process.execPath, [...program, ...argv], {
    cwd: ROOT,
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      LOG_FORMAT: "json",
      // The source would be read after each start.
      SOURCE_SCHEMAS: "false",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let written = "";
  child.stdout.on("data", (chunk: Buffer) => (written += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (written += chunk.toString()));
  const ended = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  const address = new Promise<string>((resolve, reject) => {
    child.stdout.on("data", () => {
      const found = /"msg":"listening on ([^"]+)"/.exec(written)?.[1];
      if (found !== undefined) resolve(found);
    });
    void ended.then((how) => reject(new Error(`The server ended (${how}) before it listened:\n${written}`)));
  });
  address.catch(() => undefined); // most processes are not asked for their address
  return {
    child,
    output: () => written,
    address: () => address,
    exit: () => ended,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
};
