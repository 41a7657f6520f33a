import type { Signals } from "../platform/database/signals.ts";
import type { Logger } from "../platform/lib/logger.ts";
import type { RunEnd } from "./queue/attempts.ts";
import type { EndsOutbox, RunEnding } from "./attempt/conclusion.ts";
import { writeEndedLine } from "./ended-line.ts";

/** A wait for the end of one run. */
export interface EndingWait {
  /**
   * The ending with all its particulars if the run ended in this process; `"elsewhere"` if another one said that
   * it ended; `"silence"` after a while without news: look into the database then.
   */
  readonly news: Promise<RunEnding | "elsewhere" | "silence">;
  cancel(): void;
}

/** A waiter looks by itself this often, should a signal have been lost. */
const POLL_MS = 1_000;

/** Of an end that this process brought about itself. */
export interface EndedHere {
  ending: RunEnding;
  /** Whether somebody on another process may wait for the run, so that a signal is worth its price. */
  isAwaitedElsewhere: boolean;
}

export interface EndingsParts {
  signals: Signals;
  /** Told of ends that no attempt brought about; of an attempt's the conclusion knows whether the run has a webhook. */
  outbox: Pick<EndsOutbox, "onRecorded"> | undefined;
  logger: Logger;
}

/**
 * The one place that tells of a run's end, whoever brought it about, once it is committed: those who wait for the run
 * here, at once; those on other processes, by a signal; and the log, in one line. What must not be lost is stored by the
 * statement that ends the run instead (engine/queue/sql/ended.ts).
 */
export const createEndings = ({ signals, outbox, logger }: EndingsParts) => {
  const waits = new Map<string, Set<(news: RunEnding | "elsewhere") => void>>();
  const settle = (runId: string, news: RunEnding | "elsewhere"): void => {
    const waiting = waits.get(runId);
    waits.delete(runId);
    for (const resolve of waiting ?? []) resolve(news);
  };
  const unsubscribe = signals.subscribe(({ kind, runId }) => {
    if (kind === "ended") settle(runId, "elsewhere");
  });

  return {
    /** `here`: undefined if no attempt of this process ended the run; it may run, or be waited for, anywhere. */
    publish(end: RunEnd, here?: EndedHere): void {
      const { run_id: runId } = end.run;
      writeEndedLine(logger, end, here?.ending.execMs);
      settle(runId, here?.ending ?? "elsewhere");
      // Cancelled while they waited, replaced, deleted: few, so each may look once whether there is something to send.
      if (here === undefined) outbox?.onRecorded();
      const threadId = end.run.thread_id;
      if (here?.isAwaitedElsewhere ?? true) signals.send({ kind: "ended", threadId, runId });
      if (end.turn !== undefined) signals.send({ kind: "gone", threadId, runId, turn: end.turn });
    },

    wait(runId: string): EndingWait {
      let cancel = (): void => undefined;
      const news = new Promise<RunEnding | "elsewhere" | "silence">((resolve) => {
        const timer = setTimeout(() => {
          cancel();
          resolve("silence");
        }, POLL_MS);
        const listener = (received: RunEnding | "elsewhere"): void => {
          clearTimeout(timer);
          resolve(received);
        };
        const listeners = waits.get(runId) ?? new Set();
        listeners.add(listener);
        waits.set(runId, listeners);
        cancel = () => {
          clearTimeout(timer);
          listeners.delete(listener);
          if (listeners.size === 0 && waits.get(runId) === listeners) waits.delete(runId);
        };
      });
      return { news, cancel: () => cancel() };
    },

    close(): void {
      unsubscribe();
    },
  };
};

export type Endings = ReturnType<typeof createEndings>;
