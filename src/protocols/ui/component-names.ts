import { Worker } from "node:worker_threads";

const ENTRY = new URL("./component-names-thread.js", import.meta.url);

/** A script that is still busy then is no module of components; its names are not known. */
const ANSWER_MS = 5_000;
const MEMORY_MEGABYTES = 128;

/**
 * The names of the components in a bundle, or undefined if it needs a page to say them (it looks at `document` when it is
 * loaded, say). It is asked for them in a thread, in a context that has nothing but the language: no files, no network.
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
  // A server that stops meanwhile does not wait for it.
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
