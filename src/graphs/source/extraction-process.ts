import { fork, type ChildProcess } from "node:child_process";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../platform/lib/json.ts";

/** A JSON schema per key. Each is its own document, with recursive types in `definitions`. */
export type Properties = Record<string, JsonObject>;

export interface SourceSchemas {
  state: Properties;
  input: Properties;
  output: Properties;
  context: Properties;
}

export interface ExtractionRequest {
  /** Absolute. */
  folder: string;
  /** `file`: absolute. */
  entries: readonly { id: string; file: string; exportName: string }[];
}

/**
 * Path and digest of each source file. A package.json stands for all files of its package, because its version changes
 * with them.
 */
export type Origins = [file: string, digest: string][];

/** JSON, to be sent between processes and cached. */
export interface Extraction {
  /** By graph id and namespace (`""`: the graph itself). Pairs, because an id may be `__proto__`. */
  graphs: [id: string, schemas: [namespace: string, schemas: SourceSchemas][]][];
  /** Graphs on which TypeScript failed. */
  failures: [id: string, message: string][];
  origins: Origins;
  /** False if an imported module is missing. The module may appear without a change of the origins. */
  isComplete: boolean;
}

/** V8 heap: six times the need of LangGraph's types, the largest part. */
const HEAP_MEGABYTES = 1_024;
/** Forty times the duration on an idle machine. Then the process is killed. */
const SECONDS_AT_MOST = 120;
const STDERR_CHARACTERS = 2_000;

/**
 * Runs an extraction in a process with low priority.
 * @param entry a JavaScript program that loads the TypeScript loader
 */
export const startExtraction = (entry: URL, request: ExtractionRequest) => {
  const child = fork(entry, [], {
    // Keys of databases and models must stay out of this process.
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
  // A failed fork has no channel; its error event follows.
  if (child.connected) child.send(request, () => undefined);
  return { id: child.pid, extraction, kill: (): void => void child.kill("SIGKILL") };
};

export type ExtractionProcess = ReturnType<typeof startExtraction>;

const yieldCpu = ({ pid }: ChildProcess): void => {
  if (pid === undefined) return;
  try {
    // Takes a tenth of the server's share of a busy core. With the lowest priority an extraction took half a minute.
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The process has ended, or the system has no priorities.
  }
};
