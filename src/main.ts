/** Process entry, loaded by `bin/threadloom.js`. */
import process from "node:process";
import type { CommandSurroundings } from "./cli/command.ts";
import { createProgram } from "./cli/program.ts";
import { runProgram, writingTo } from "./cli/run-command.ts";

const argv = process.argv.slice(2);
const unread = new AbortController();
const surroundings: CommandSurroundings = {
  environment: process.env,
  write: writingTo(process.stdout, () => unread.abort()),
  note: writingTo(process.stderr),
  terminal: process.stdout.isTTY === true,
  canAsk: process.stdout.isTTY === true && process.stdin.isTTY === true,
  get columns() {
    return process.stdout.isTTY ? process.stdout.columns : undefined;
  },
  unread: unread.signal,
  stopping() {
    const stopping = new AbortController();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
    // A prompt leaves the terminal in raw mode, in which Ctrl-C is a key and sends no signal.
    if (process.stdin.isTTY) process.stdin.setRawMode(false);
    return stopping.signal;
  },
};
process.exitCode = await runProgram(await createProgram(argv, surroundings), { argv, ...surroundings });
