import type { CheckpointStorage } from "../../state/checkpoints/types.ts";
import type { Database } from "../../platform/database/database.ts";
import { isCancelled, isPassing } from "../../platform/database/passing-faults.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import type { Progress } from "./progress.ts";
import type { Source } from "./source.ts";
import { createTarget } from "./target.ts";
import { createThreadCopy, type CopiedThread } from "./thread-copy.ts";

export interface ImporterOptions {
  source: Source;
  here: { database: Database; checkpoints: CheckpointStorage };
  threadId: string | undefined;
  /** For the progress. */
  threadsTotal: number;
  /** The source does not store the graph. */
  graphId: string | undefined;
  onProgress: (progress: Progress, isLast?: boolean) => void;
  signal: AbortSignal;
}

export interface ImportReport {
  copied: number;
  already: number;
  stopped: boolean;
  checkpoints: number;
  seconds: number;
  skipped: { threadId: string; reason: string }[];
  failed: { threadId: string; reason: string }[];
  renamed: number;
}

const THREADS_PER_PAGE = 500;
/** While one thread waits for a database, others are parsed. */
export const THREADS_AT_A_TIME = 4;

/** Skips stored rows, so a killed import may be restarted. Throws if a database is unreachable. */
export const importThreads = async (options: ImporterOptions): Promise<ImportReport> => {
  const { source, here, threadId, threadsTotal, graphId, onProgress, signal } = options;
  const startedAt = performance.now();
  const report: ImportReport = {
    copied: 0,
    already: 0,
    stopped: false,
    checkpoints: 0,
    seconds: 0,
    skipped: [],
    failed: [],
    renamed: 0,
  };
  let threads = 0;
  let checkpoints = 0;
  const printProgress = (isLast = false): void => {
    report.seconds = (performance.now() - startedAt) / 1_000;
    onProgress(
      { threads, threadsTotal: Math.max(threadsTotal, threads), checkpoints, seconds: report.seconds },
      isLast,
    );
  };
  const copy = createThreadCopy({
    source,
    target: createTarget(here.database, here.checkpoints),
    checkpoints: here.checkpoints,
    graphId,
    onCheckpoints(count) {
      checkpoints += count;
      printProgress();
    },
    signal,
  });

  const note = (id: string, { outcome, reason = "", checkpoints: count }: CopiedThread): void => {
    report.checkpoints += count;
    if (outcome === "stopped") return;
    if (outcome === "skipped") report.skipped.push({ threadId: id, reason });
    else {
      report[outcome] += 1;
      if (!isUuid(id)) report.renamed += 1;
    }
  };
  const take = async (id: string): Promise<void> => {
    try {
      note(id, await copy(id));
    } catch (error) {
      // An unreadable thread must not stop the others, but an unreachable database stops the import.
      if (error instanceof StartError || (isPassing(error) && !isCancelled(error))) throw error;
      report.failed.push({ threadId: id, reason: error instanceof Error ? error.message : String(error) });
    }
    threads += 1;
    printProgress();
  };

  printProgress();
  const ids = threadId === undefined ? pagesOf(source) : [threadId][Symbol.iterator]();
  const workers = Array.from({ length: THREADS_AT_A_TIME }, async () => {
    while (!signal.aborted) {
      const next = await ids.next();
      if (next.done === true) return;
      await take(next.value);
    }
  });
  // No copy may continue after the report.
  for (const worker of await Promise.allSettled(workers))
    if (worker.status === "rejected") throw worker.reason;
  report.stopped = signal.aborted;
  printProgress(true);
  return report;
};

/** Several workers may share the generator, because it queues `next()` calls. */
async function* pagesOf(source: Source): AsyncGenerator<string, undefined> {
  for (let after: string | undefined; ;) {
    const page = await source.threadIds(after, THREADS_PER_PAGE);
    yield* page;
    after = page[page.length - 1];
    if (page.length < THREADS_PER_PAGE) return undefined;
  }
}
