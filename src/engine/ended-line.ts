import type { Logger } from "../platform/lib/logger.ts";
import type { RunEnd } from "./queue/attempts.ts";

/** The graph chooses the name of the error's class. */
const CLASS_LENGTH_AT_MOST = 100;

const since = (from: Date, to: Date): number => Math.max(0, to.getTime() - from.getTime());

/**
 * `queue_ms`: from when the run was due until its first attempt, or its end. `execMs`: of the last attempt,
 * including the storing of its end; undefined if executed elsewhere. Costs 4 microseconds.
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
