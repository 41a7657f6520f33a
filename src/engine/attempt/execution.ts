import { markedOfGraph } from "../../platform/lib/contents.ts";
import type { ClaimedRunRow, ExecutedRunRow } from "../../platform/database/tables.ts";
import type { ServerMetrics } from "../../platform/metrics/metrics.ts";
import {
  ObjectStoreError,
  LeaseLostError,
  sqlState,
  StateLostError,
  UNIQUE_VIOLATION,
} from "../../platform/domain/errors.ts";
import type { Hub } from "../events/hub.ts";
import { SEQ_PER_ATTEMPT } from "../events/event-ids.ts";
import type { EventLog, LogEvents } from "../events/log.ts";
import { RunChannel } from "../events/channel.ts";
import type { AttemptResult, GraphExecutor, StopReason } from "../executors/executor.ts";
import { PassedFaultError } from "../executors/process/messages.ts";
import { createConclusion, type ConclusionParts, type RunEnding } from "./conclusion.ts";
import {
  exportAttempt,
  type TelemetryOptions,
  createAttemptRecords,
  type AttemptRecordsParts,
} from "../traces/attempt-records.ts";
import { selectorOf, type AttemptSelector } from "../queue/attempts.ts";

export interface Execution extends Readonly<AttemptSelector> {
  stop(reason: StopReason): void;
  wantValues(): void;
  /** Undefined if the run continues elsewhere. Never rejects. */
  readonly ended: Promise<RunEnding | undefined>;
}

/** Each is called once, in this order. */
export interface ExecutionEvents {
  onGraphEnded(): void;
  /** Called before `ended` resolves. */
  onReleased(ending: RunEnding | undefined): void;
}

interface ExecutorParts extends ConclusionParts, AttemptRecordsParts {
  graphExecutor: GraphExecutor;
  hub: Hub;
  eventLog: EventLog;
  /** Undefined: no spans are exported. */
  telemetry: TelemetryOptions | undefined;
  metrics: AttemptRecordsParts["metrics"] & Pick<ServerMetrics, "runBegan" | "runShowed" | "attemptsLost">;
}

const MS_PER_SECOND = 1_000;

/** A run may break its database connection itself, so it ends with an error after this many attempts. */
const ATTEMPTS_AT_A_DATABASE = 10;

/** Between two times of the database. */
const queuedSeconds = ({ available_at, started_at }: ClaimedRunRow): number =>
  Math.max(0, (started_at?.getTime() ?? 0) - available_at.getTime()) / MS_PER_SECOND;

const userIdOf = ({ auth_user: user }: ClaimedRunRow): string | undefined =>
  typeof user?.identity === "string" ? user.identity : undefined;

/** The sweep comes again, so it waits for no run, and an earlier sweep may have logged the same event. */
const logOfAbandoned = (eventLog: EventLog, run: ExecutedRunRow): LogEvents => {
  const source = { ...selectorOf(run), turn: run.turn };
  return (events) =>
    eventLog
      .append(source, events, () => false)
      .catch((error: unknown) => {
        if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
      });
};

export const createExecutor = (parts: ExecutorParts) => {
  const { database, queue, outbox, graphExecutor, hub, eventLog, processId, timeoutSecondsOf } = parts;
  const { faults, metrics, telemetry, logger } = parts;
  const conclude = createConclusion(parts);

  const giveUp = async (run: ClaimedRunRow): Promise<void> => {
    await queue.giveUpLease(selectorOf(run)).catch((error: unknown) => {
      logger.debug({ err: error, run_id: run.run_id }, "a lease could not be released; it will expire");
    });
  };

  return {
    get aloneAtMost(): number {
      return graphExecutor.aloneAtMost;
    },

    /** Ends a lost run that must not be tried again. */
    async concludeAbandoned(run: ExecutedRunRow, result: AttemptResult): Promise<RunEnding | undefined> {
      const channel = new RunChannel({
        threadId: run.thread_id,
        runId: run.run_id,
        attempt: run.attempt,
        turn: run.turn,
        firstSeq: run.attempt * SEQ_PER_ATTEMPT,
        keep: false,
        ...(run.resumable || run.reader_id !== null ? { log: logOfAbandoned(eventLog, run) } : {}),
      });
      return await conclude(run, channel, result, () => false, false);
    },

    execute(
      run: ClaimedRunRow,
      creatorIsHere: boolean,
      { onGraphEnded, onReleased }: ExecutionEvents,
    ): Execution {
      const { run_id, thread_id, graph_id, attempt: number } = run;
      const startedAt = performance.now();
      // Later attempts begin late because of a fault, not of the queue.
      const queued = number === 1 ? queuedSeconds(run) : undefined;
      const exported = telemetry && exportAttempt(run, queued, telemetry);
      const log = logger.child({ run_id, thread_id, graph_id, attempt: number });
      const channel = hub.open({
        threadId: run.thread_id,
        runId: run.run_id,
        attempt: run.attempt,
        turn: run.turn,
        firstSeq: (run.attempt - 1) * SEQ_PER_ATTEMPT,
        graphId: run.graph_id,
        userId: userIdOf(run),
        keep: run.reader_id === processId,
        resumable: run.resumable,
        logged: run.reader_id !== null && run.reader_id !== processId,
        onFirstOfGraph:
          queued === undefined
            ? undefined
            : () => metrics.runShowed(graph_id, queued + (performance.now() - startedAt) / MS_PER_SECOND),
      });
      if (queued !== undefined) metrics.runBegan(graph_id, queued);
      faults.reached("before-first-event");
      channel.emit("metadata", () => JSON.stringify({ run_id: run.run_id, attempt: run.attempt }));
      const records = createAttemptRecords(parts, selectorOf(run));
      const publishesProtocol = run.kwargs.event_streaming === true || hub.wantsProtocol(run.thread_id);
      const attempt = graphExecutor.execute(run, channel, {
        isAlone: queue.goesAlone(run),
        publishesProtocol,
        records: exported === undefined ? records.options : { ...records.options, exported: exported.spans },
        onGraphEnded,
      });
      if (outbox !== undefined && run.kwargs.webhook !== undefined) attempt.wantValues();
      let lost = false;
      const stop = (reason: StopReason): void => {
        if (reason.kind === "lease-lost") lost = true;
        attempt.stop(reason);
      };
      const timer = setTimeout(() => stop({ kind: "timeout" }), timeoutSecondsOf(graph_id) * 1_000);
      // Requested while no process held the run.
      if (run.cancel_action !== null) stop({ kind: "cancel", action: run.cancel_action });

      const settle = async (): Promise<RunEnding | undefined> => {
        let result = await attempt.result;
        clearTimeout(timer);
        if (
          result.kind === "failed" &&
          (database.isLoss(result.error) ||
            result.error instanceof StateLostError ||
            result.error instanceof PassedFaultError) &&
          run.attempt < ATTEMPTS_AT_A_DATABASE
        ) {
          // The run continues from its last checkpoint, because the graph did not cause the failure.
          const what = result.error instanceof ObjectStoreError ? "object store" : "database";
          log.warn({ err: result.error }, `the ${what} was unreachable; the run goes back to the queue`);
          result = { kind: "stopped", reason: { kind: "shutdown" } };
        }
        if (result.kind === "failed") log.warn({ err: markedOfGraph(result.error) }, "the graph failed");
        if (result.kind === "lost") {
          metrics.attemptsLost("graph process", 1);
          log.warn(`the process of the graph ${result.how}`);
        }
        let ending: RunEnding | undefined;
        let isLeft = false;
        try {
          ending = await conclude(run, channel, result, () => !lost, creatorIsHere, records);
        } catch (error) {
          if (error instanceof LeaseLostError) log.warn("the lease was lost; another attempt has the run");
          else {
            log.error({ err: error }, "the outcome of a run could not be stored");
            isLeft = true;
          }
        }
        if (ending === undefined) {
          hub.abandon(channel);
          await records.leave();
          log.debug("the attempt ended; the run continues elsewhere");
        } else {
          hub.end(channel);
          const { total, slowestNode } = records;
          ending = {
            ...ending,
            execMs: performance.now() - startedAt,
            ...(total.calls > 0 ? { usage: total } : {}),
            ...(slowestNode === undefined ? {} : { slowestNode }),
            ...(exported === undefined ? {} : { traceId: exported.traceId }),
          };
        }
        exported?.end(ending);
        onReleased(ending);
        // No heartbeat renews this lease any more; this ends it early.
        if (isLeft) await giveUp(run);
        return ending;
      };
      return {
        ...selectorOf(run),
        stop,
        wantValues: () => attempt.wantValues(),
        ended: exported === undefined ? settle() : exported.run(settle),
      };
    },
  };
};

export type Executor = ReturnType<typeof createExecutor>;
