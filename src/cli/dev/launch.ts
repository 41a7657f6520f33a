import { fork } from "node:child_process";
import { constants } from "node:os";
import type { Flags } from "../../platform/config/resolve.ts";

export const isAttended = (
  environment: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean =>
  isTerminal && !environment["CI"] && !environment["SSH_CONNECTION"] && environment["BROWSER"] !== "none";

/** A missing browser is no error: the terminal shows the address. */
export const openPage = async (address: string): Promise<void> => {
  const { default: open } = await import("open");
  try {
    const opener = await open(address);
    opener.on("error", () => undefined);
  } catch {
    // No browser.
  }
};

/** A short grace period is enough, because the runs continue at the next start. */
export const DEFAULTS = {
  WORKERS: "1",
  LOG_FORMAT: "pretty",
  LOG_CONTENTS: "true",
  BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "2",
};

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

/**
 * Restarts the server at `START_AGAIN`. Resolves to the exit code.
 * @param opensConsole opens a browser after the first start
 */
export const launch = async (flags: Flags, opensConsole: boolean): Promise<number> => {
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
