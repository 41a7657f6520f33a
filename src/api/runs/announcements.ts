import type { Signal, SignalKind, Signals } from "../../platform/database/signals.ts";
import type { CancelAction, RunRow } from "../../platform/database/tables.ts";
import type { Endings } from "../../engine/endings.ts";
import type { Worker } from "../../engine/worker/worker.ts";
import type { RunEnd } from "../../engine/queue/attempts.ts";

type RunKey = Pick<RunRow, "thread_id" | "run_id">;

/** Node's longest timer: 24 days. */
const LONGEST_TIMER_MS = 2_147_483_647;

const about = (kind: SignalKind, run: RunKey): Signal => ({
  kind,
  threadId: run.thread_id,
  runId: run.run_id,
});

/** Tells the worker of this process, other servers and waiters what happened to runs. */
export const createAnnouncements = (worker: Worker, signals: Signals, endings: Endings) => ({
  stop(run: RunKey, action: CancelAction): void {
    const execution = worker.execution(run.run_id);
    if (execution === undefined) signals.send(about("cancel", run));
    else execution.stop({ kind: "cancel", action });
  },

  ended: (end: RunEnd): void => endings.publish(end),

  available(run: RunKey, afterSeconds: number): void {
    const waitMs = afterSeconds * 1_000;
    // Node would fire a longer timer at once. Instead, the worker's poll finds the run.
    if (waitMs > LONGEST_TIMER_MS) return;
    if (afterSeconds > 0) setTimeout(() => worker.wake(), waitMs).unref();
    else {
      worker.wake();
      signals.send(about("available", run));
    }
  },
});

export type Announcements = ReturnType<typeof createAnnouncements>;
