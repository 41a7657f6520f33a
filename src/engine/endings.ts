import type { Signals } from "../platform/database/signals.ts";
import type { Logger } from "../platform/lib/logger.ts";
import type { ServerMetrics } from "../platform/metrics/metrics.ts";
import type { RunEnd } from "./queue/attempts.ts";
import type { EndsOutbox, RunEnding } from "./attempt/conclusion.ts";

const POLL_MS = 1_000;

const MS_PER_SECOND = 1_000;

export interface EndedHere {
  ending: RunEnding;
  /** Whether another process may wait for the run, so that a signal is worth its cost. */
  isAwaitedElsewhere: boolean;
}

/** The graph chooses the name of the error's class. */
const CLASS_LENGTH_AT_MOST = 100;

const since = (from: Date, to: Date): number => Math.max(0, to.getTime() - from.getTime());

/** `queue_ms`: from the due time to the first attempt, or to the end. `execMs`: see RunEnding. */
const writeEndedLine = (
  logger: Logger,
  { run, status, error }: RunEnd,
  ending: RunEnding | undefined,
): void => {
  const { execMs, usage, slowestNode, traceId } = ending ?? {};
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
      ...(usage === undefined
        ? {}
        : { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens }),
      ...(usage?.cost === undefined ? {} : { cost: usage.cost }),
      ...(slowestNode === undefined
        ? {}
        : { slowest_node: slowestNode.name, slowest_node_ms: Math.round(slowestNode.ms) }),
      ...(traceId === undefined ? {} : { trace_id: traceId }),
      ...(error === null ? {} : { error_class: String(error.error).slice(0, CLASS_LENGTH_AT_MOST) }),
    },
    "run ended",
  );
};

/**
 * Announces committed ends to waiters here, to other processes by a signal, in one log line, and in the metrics. `outbox`:
 * notified only of ends without an attempt, because attempts notify it themselves.
 */
export const createEndings = (
  signals: Signals,
  outbox: Pick<EndsOutbox, "onRecorded"> | undefined,
  metrics: Pick<ServerMetrics, "runEnded">,
  logger: Logger,
) => {
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
    publish(end: RunEnd, here?: EndedHere): void {
      const { run_id: runId } = end.run;
      const execMs = here?.ending.execMs;
      writeEndedLine(logger, end, here?.ending);
      metrics.runEnded(
        end.run.graph_id,
        end.status,
        execMs === undefined ? undefined : execMs / MS_PER_SECOND,
      );
      settle(runId, here?.ending ?? "elsewhere");
      // These ends are few, so the outbox may check for a delivery each time.
      if (here === undefined) outbox?.onRecorded();
      const threadId = end.run.thread_id;
      if (here?.isAwaitedElsewhere ?? true) signals.send({ kind: "ended", threadId, runId });
      if (end.turn !== undefined) signals.send({ kind: "gone", threadId, runId, turn: end.turn });
    },

    /**
     * `news`: `"elsewhere"`: another process ended the run; `"silence"`: no news for `POLL_MS`, so read the database.
     */
    wait(runId: string) {
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
      return { news, cancel: (): void => cancel() };
    },

    close(): void {
      unsubscribe();
    },
  };
};

export type Endings = ReturnType<typeof createEndings>;
