import type { CommandSurroundings } from "../../src/cli/command.ts";
import { createProgram } from "../../src/cli/program.ts";
import { runProgram } from "../../src/cli/run-command.ts";
import type { CommandOptions, Ended } from "./command-process.ts";

/**
 * Runs `threadloom` with these arguments in this process, in a tenth of the time of a process of its own. Each command also has a test that
 * starts a process (`commandOf`).
 */
export const commandHere = async (
  argv: string[],
  { cwd, environment }: CommandOptions,
  others: Partial<CommandSurroundings> = {},
): Promise<Ended> => {
  let [out, stderr] = ["", ""];
  const surroundings = {
    environment: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...environment },
    write: (text: string): void => void (out += text),
    note: (text: string): void => void (stderr += text),
    terminal: false,
    canAsk: false,
    unread: new AbortController().signal,
    stopping: () => new AbortController().signal,
    ...others,
  };
  const before = process.cwd();
  process.chdir(cwd);
  try {
    const code = await runProgram(await createProgram(argv, surroundings), { argv, ...surroundings });
    return { code, out, stderr };
  } finally {
    process.chdir(before);
  }
};
