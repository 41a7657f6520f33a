import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Environment } from "../../platform/config/resolve.ts";
import type { LoadingAnswer, LoadingRequest } from "./loading-check.ts";

const ENTRY = fileURLToPath(new URL("./loading-check-entry.js", import.meta.url));
const OUTPUT_CHARACTERS = 2_000;

/** A child process, because the module may hang, exit, or keep handles open. */
export const loadElsewhere = (
  request: LoadingRequest,
  environment: Environment,
  timeoutMs: number,
): Promise<LoadingAnswer> =>
  new Promise((resolve) => {
    const child = fork(ENTRY, [], {
      env: { ...environment },
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    let output = "";
    const keep = (chunk: Buffer): void =>
      void (output = (output + chunk.toString()).slice(-OUTPUT_CHARACTERS));
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    const timer = setTimeout(() => {
      resolve({ failure: `Not loaded after ${timeoutMs / 1_000} s.` });
      child.kill("SIGKILL");
    }, timeoutMs);
    child.on("message", (answer) => resolve(answer as LoadingAnswer));
    child.on("error", (error) => resolve({ failure: error.message }));
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ failure: `The process that loaded it ended with ${signal ?? code}. ${output}`.trim() });
    });
    child.send(request, () => undefined);
  });
