import { fork } from "node:child_process";
import { constants } from "node:os";
import type { Flags } from "../../platform/config/resolve.ts";
import { watchNpmParent } from "./npm-parent.ts";
import { openPage } from "./opening.ts";

const ENTRY = new URL("./server-entry.js", import.meta.url);

/** Exit code that asks for a restart, after a change that a running process can't apply. */
export const START_AGAIN = 75;

export interface Ready {
  kind: "ready";
  consoleAddress: string | undefined;
}

const isReady = (message: unknown): message is Ready =>
  typeof message === "object" && message !== null && (message as { kind?: unknown }).kind === "ready";

const runOnce = (flags: Flags, onReady: (ready: Ready) => void): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = fork(ENTRY, [JSON.stringify(flags)], { stdio: "inherit" });
    child.on("message", (message) => {
      if (isReady(message)) onReady(message);
    });
    const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
    for (const signal of signals) process.on(signal, forward);
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      for (const each of signals) process.off(each, forward);
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });

const leadsGroup = (): boolean => {
  try {
    return process.kill(-process.pid, 0);
  } catch {
    return false;
  }
};

/**
 * Restarts the server at `START_AGAIN`. Resolves to the exit code.
 * @param opensConsole opens a browser after the first start
 */
export const launch = async (flags: Flags, opensConsole: boolean): Promise<number> => {
  watchNpmParent({
    environment: process.env,
    parent: () => process.ppid,
    leadsGroup,
    onEnd: () => void process.kill(process.pid, "SIGTERM"),
  });
  let code: number;
  let isDue = opensConsole;
  const onReady = ({ consoleAddress }: Ready): void => {
    if (isDue && consoleAddress !== undefined) void openPage(consoleAddress);
    isDue = false;
  };
  do code = await runOnce(flags, onReady);
  while (code === START_AGAIN);
  return code;
};
