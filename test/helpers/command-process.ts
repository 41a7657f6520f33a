import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { programOf } from "./compiled-package.ts";

export interface Ended {
  code: number | NodeJS.Signals;
  out: string;
  stderr: string;
}

export interface StartedCommand {
  child: ChildProcess;
  out(): string;
  ended: Promise<Ended>;
}

export interface CommandOptions {
  cwd: string;
  /** In addition to PATH and HOME. */
  environment?: Record<string, string>;
}

/** Starts `threadloom` with these arguments, like a shell. */
export const startCommand = (argv: string[], { cwd, environment }: CommandOptions): StartedCommand => {
  const child = spawn(process.execPath, [programOf(), ...argv], {
    cwd,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, "close").then(([code, signal]) => ({
    code: (code ?? signal) as number | NodeJS.Signals,
    out,
    stderr,
  }));
  return { child, out: () => out, ended };
};

export const commandOf = (argv: string[], options: CommandOptions): Promise<Ended> =>
  startCommand(argv, options).ended;
