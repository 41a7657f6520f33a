import type { Signals } from "../database/signals.ts";
import type { CancelAction, EndedRun } from "../database/tables.ts";
import { tellEnd } from "../engine/attempt/ended-line.ts";
import type { Worker } from "../engine/worker/worker.ts";
import type { Logger } from "../lib/logger.ts";

/** Tells whom it concerns what was done to runs, here and in the other processes. */
export interface Announcements {
  /** A run in progress was asked to stop. */
  stop(runId: string, action: CancelAction): void;
  /** A run ended while it waited. */
  ended(run: EndedRun, action: CancelAction): void;
  /** A run waits, and may start in so many seconds. */
  available(runId: string, afterSeconds: number): void;
}

/** What a timer of Node can hold: 24 days. */
const LONGEST_TIMER_MS = 2_147_483_647;

export const createAnnouncements = (worker: Worker, signals: Signals, logger: Logger): Announcements => ({
  stop(runId, action) {
    const execution = worker.execution(runId);
    if (execution === undefined) signals.send("cancel", runId);
    else execution.stop({ kind: "cancel", action });
  },

  ended(run, action) {
    tellEnd(logger, run, { status: action === "rollback" ? "rolled-back" : "interrupted", error: null });
    signals.send("ended", run.run_id);
  },

  available(runId, afterSeconds) {
    const waitMs = afterSeconds * 1_000;
    // One further away would ring at once; the worker's poll finds the run.
    if (waitMs > LONGEST_TIMER_MS) return;
    if (afterSeconds > 0) setTimeout(() => worker.wake(), waitMs).unref();
    else {
      worker.wake();
      signals.send("available", runId);
    }
  },
});
