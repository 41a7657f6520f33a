import { fork } from "node:child_process";
import { constants } from "node:os";

const ENTRY = new URL("./server-entry.js", import.meta.url);

/** The exit code of a server that is to be started again: what has changed can't be changed in a process. */
export const START_AGAIN = 75;

const runOnce = (argv: readonly string[]): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = fork(ENTRY, argv, { stdio: "inherit" });
    const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
    for (const signal of signals) process.on(signal, forward);
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      for (const each of signals) process.off(each, forward);
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });

/**
 * Runs the server of `threadloom dev` as a child, and starts it again when it asks for that. The database outlives the child.
 * Resolves to the exit code.
 */
export const launch = async (argv: readonly string[]): Promise<number> => {
  let code: number;
  do code = await runOnce(argv);
  while (code === START_AGAIN);
  return code;
};
