import type { EndedRun } from "../../database/tables.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Logger } from "../../lib/logger.ts";

export interface Ended {
  /** `deleted`: with its thread, while it ran. */
  status: "success" | "error" | "timeout" | "interrupted" | "rolled-back" | "deleted";
  error: JsonObject | null;
  /** How long the last attempt was executed, the storing of its end included; undefined if it isn't known. */
  execMs?: number;
}

/** The name of an error's class is the graph's choice. */
const CLASS_LENGTH_AT_MOST = 100;

const since = (from: Date, to: Date): number => Math.max(0, to.getTime() - from.getTime());

/**
 * The one line that is written of every run that ended, whoever ended it and however. `queue_ms`: from when the run was
 * due until its first attempt began, or until its end if none did. Measured: 4 microseconds.
 */
export const tellEnd = (logger: Logger, run: EndedRun, { status, error, execMs }: Ended): void => {
  const { run_id, thread_id, graph_id, assistant_id, attempt, available_at, started_at } = run;
  logger.info(
    {
      run_id,
      thread_id,
      graph_id,
      assistant_id,
      status,
      attempt,
      queue_ms: since(available_at, started_at ?? new Date()),
      ...(execMs === undefined ? {} : { exec_ms: Math.round(execMs) }),
      ...(error === null ? {} : { error_class: String(error.error).slice(0, CLASS_LENGTH_AT_MOST) }),
    },
    "run ended",
  );
};

/**
 * Of a run that this process lost: whoever deletes threads doesn't know what ran there, so the process that had the run
 * looks whether its thread is gone. A threadless run takes its thread along when it ends, in whichever attempt. Never
 * rejects: a line that can't be written must not keep the run's slot.
 */
export const tellIfDeleted = async (
  logger: Logger,
  run: EndedRun & { delete_thread: boolean },
  execMs: number,
  threads: { isThreadGone(threadId: string): Promise<boolean> },
): Promise<void> => {
  if (run.delete_thread) return;
  try {
    if (!(await threads.isThreadGone(run.thread_id))) return;
    tellEnd(logger, run, { status: "deleted", error: null, execMs });
  } catch (error) {
    logger.debug({ err: error, run_id: run.run_id }, "whether a run that was lost was deleted isn't known");
  }
};
