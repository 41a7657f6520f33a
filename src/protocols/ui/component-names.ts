import { Worker } from "node:worker_threads";

const ENTRY = new URL("./component-names-thread.js", import.meta.url);

/** A slower script is no module of components. */
const ANSWER_MS = 5_000;
const MEMORY_MEGABYTES = 128;

/**
 * Undefined if the bundle needs a page (for example `document`) to load. The bundle gets only the language: no files,
 * no network.
 */
export const namesOfComponents = async (
  script: string,
  globalName: string,
): Promise<ReadonlySet<string> | undefined> => {
  const thread = new Worker(ENTRY, {
    workerData: { script, globalName },
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MEGABYTES },
    stdout: true,
    stderr: true,
  });
  // A stopping server does not wait for the thread.
  thread.unref();
  let timer: NodeJS.Timeout | undefined;
  try {
    const names = await new Promise<unknown>((resolve) => {
      thread.once("message", resolve);
      thread.once("error", () => resolve(undefined));
      thread.once("exit", () => resolve(undefined));
      timer = setTimeout(() => resolve(undefined), ANSWER_MS);
      timer.unref();
    });
    return Array.isArray(names) ? new Set(names as string[]) : undefined;
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
};
