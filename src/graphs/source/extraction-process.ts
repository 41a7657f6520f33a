import { fork, type ChildProcess } from "node:child_process";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import type { Extraction, ExtractionRequest } from "./extraction.ts";

/** The heap of V8: six times what LangGraph's own types take, which are most of what is read. */
const HEAP_MEGABYTES = 1_024;
/** Forty times what it takes on an idle machine; then it is killed. */
const SECONDS_AT_MOST = 120;
const STDERR_CHARACTERS = 2_000;

export interface ExtractionProcess {
  readonly id: number | undefined;
  /** Rejects with one sentence if the process ends without a result. */
  readonly extraction: Promise<Extraction>;
  /** Ends the process, if it has not ended. */
  kill(): void;
}

/**
 * Reads schemas from source in a process of its own, which ends after that: TypeScript takes seconds of CPU and some
 * hundred megabytes. It yields the CPU to everything else.
 * @param entry the program of the process: JavaScript, which brings the loader for TypeScript along
 */
export const startExtraction = (entry: URL, request: ExtractionRequest): ExtractionProcess => {
  const child = fork(entry, [], {
    // Nothing of the server's own is known there, keys of databases and models least of all.
    env: {},
    cwd: fileURLToPath(new URL(".", entry)),
    execArgv: [`--max-old-space-size=${HEAP_MEGABYTES}`],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  yieldCpu(child);
  let output = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-STDERR_CHARACTERS);
  });
  const extraction = new Promise<Extraction>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`The process took more than ${SECONDS_AT_MOST} seconds.`));
    }, SECONDS_AT_MOST * 1_000);
    child.on("message", (message) => resolve(message as Extraction));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      reject(new Error(`The process ended with ${signal ?? code}. ${output}`.trim()));
    });
  });
  // Without a process there is no channel; its error is on its way.
  if (child.connected) child.send(request, () => undefined);
  return { id: child.pid, extraction, kill: () => void child.kill("SIGKILL") };
};

const yieldCpu = ({ pid }: ChildProcess): void => {
  if (pid === undefined) return;
  try {
    // A tenth of what the server gets where both want a core. With the lowest, somebody waits half a minute for it.
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // It has ended, or the system knows no priorities: it takes its share like others.
  }
};
