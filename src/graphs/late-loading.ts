import type { Logger } from "../platform/lib/logger.ts";
import type { GraphEntry } from "./project/langgraph-json.ts";

const LATE_MS = 10_000;

interface LoadingWatch {
  logger: Logger;
  /** Aborted: nobody waits for the graph any more. */
  signal?: AbortSignal | undefined;
  lateMs?: number | undefined;
}

/** Logs the graph's name, because a top-level `await` may never end. */
export const watchLoading = async <Loaded>(
  { id, file }: GraphEntry,
  loading: Promise<Loaded>,
  { logger, signal, lateMs = LATE_MS }: LoadingWatch,
): Promise<Loaded> => {
  const timer = setTimeout(() => {
    if (signal?.aborted === true) return;
    const after = `${lateMs / 1_000} seconds`;
    logger.warn(
      { graph_id: id, file },
      `graph '${id}' has not finished loading after ${after}. Check whether its module awaits something that never comes.`,
    );
  }, lateMs).unref();
  try {
    return await loading;
  } finally {
    clearTimeout(timer);
  }
};
