import type { Logger } from "../platform/lib/logger.ts";
import type { GraphEntry } from "./project/langgraph-json.ts";

const LATE_MS = 10_000;

interface LoadingWatch {
  logger: Logger;
  signal?: AbortSignal | undefined;
  lateMs?: number | undefined;
}

/** Logs the graph's name, because a top-level `await` may never end. Rejects with the signal's reason. */
export const watchLoading = async <Loaded>(
  { id, file }: GraphEntry,
  loading: Promise<Loaded>,
  { logger, signal, lateMs = LATE_MS }: LoadingWatch,
): Promise<Loaded> => {
  const timer = setTimeout(() => {
    const after = `${lateMs / 1_000} seconds`;
    logger.warn(
      { graph_id: id, file },
      `graph '${id}' has not finished loading after ${after}. Check whether its module awaits something that never comes.`,
    );
  }, lateMs);
  let giveUp = (): void => undefined;
  const givenUp = new Promise<never>((_resolve, reject) => {
    giveUp = () => reject(signal?.reason as Error);
    if (signal?.aborted === true) giveUp();
    signal?.addEventListener("abort", giveUp, { once: true });
  });
  try {
    return await Promise.race([loading, givenUp]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
  }
};
