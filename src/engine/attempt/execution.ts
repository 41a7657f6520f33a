import type { CheckpointStorage } from "../../checkpoints/types.ts";
import type { Database } from "../../database/database.ts";
import type { ClaimedRunRow, RunRow } from "../../database/tables.ts";
import { isPassing, retryPassing } from "../../database/passing-faults.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import { LeaseLostError, StateLostError } from "../../lib/errors.ts";
import type { Faults } from "../../lib/faults.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Logger } from "../../lib/logger.ts";
import { toWireJson } from "../../values/wire-json.ts";
import type { Hub } from "../../events/hub.ts";
import { SEQ_PER_ATTEMPT, type EventLog } from "../../events/log.ts";
import { RunChannel } from "../../events/channel.ts";
import type { AttemptResult, GraphExecutor, StopReason } from "../executors/executor.ts";
import { tellEnd, tellIfDeleted } from "./ended-line.ts";
import { createOutcomes } from "./outcomes.ts";
import { selectorOf, type RunOutcome } from "../../queue/attempts.ts";
import type { Queue } from "../../queue/queue.ts";

/** How a run that was executed here ended. */
export interface RunEnding {
  status: RunOutcome["status"] | "rolled-back";
  error: JsonObject | null;
  /** The graph's final values as JSON, made when asked for; undefined if they aren't here: the thread has them. */
  values: () => string | undefined;
  /** A JSON list of the interrupts that wait for an answer; undefined if the run did not stop at one. */
  interrupts: (() => string) | undefined;
  /** Other runs of the thread wait for their turn. */
  othersWait: boolean;
}

/** A run in the hands of this process. */
export interface Execution {
  readonly runId: string;
  readonly threadId: string;
  readonly attempt: number;
  stop(reason: StopReason): void;
  /** Somebody will ask the ending for its values. */
  wantValues(): void;
  /** Undefined if the run goes on elsewhere: its lease was lost, or handed back. Never rejects. */
  readonly ended: Promise<RunEnding | undefined>;
}

/** What a worker is told of an execution, in this order, each once. */
export interface ExecutionEvents {
  /** The graph takes no more time; what became of it is still to be stored. */
  onGraphEnded(): void;
  /** The run is out of this process's hands; called before `ended` resolves. */
  onReleased(ending: RunEnding | undefined): void;
}

export interface ExecutorParts {
  database: Database;
  queue: Queue;
  graphs: Graphs;
  checkpoints: CheckpointStorage;
  graphExecutor: GraphExecutor;
  hub: Hub;
  eventLog: EventLog;
  processId: string;
  runTimeoutSeconds: number;
  faults: Faults;
  logger: Logger;
}

/**
 * A run whose reads or checkpoints fail for want of the database is tried again, so often: should it be the run
 * itself that breaks the connection, it must end.
 */
const ATTEMPTS_AT_A_DATABASE = 10;

/** Executes claimed runs and stores how they ended. */
export const createExecutor = (parts: ExecutorParts) => {
  const {
    database,
    queue,
    graphs,
    checkpoints,
    graphExecutor,
    hub,
    eventLog,
    processId,
    runTimeoutSeconds,
    faults,
    logger,
  } = parts;
  const outcomes = createOutcomes({ database, graphs, checkpoints, runTimeoutSeconds, logger });

  /** Repeats while the database is away: an outcome that was reached must not be lost while the lease is held. */
  const persist = <T>(write: (isRetry: boolean) => Promise<T>, isMine: () => boolean): Promise<T> =>
    retryPassing(write, { isWanted: isMine });

  /** The run and all it did are gone; the thread is what it was before. */
  const rollBack = async (run: RunRow): Promise<boolean> =>
    await database.transaction(async (transaction) => {
      await transaction.query("select 1 from threadloom.threads where thread_id = $1 for no key update", [
        run.thread_id,
      ]);
      const held = await queue.lockAttempt(transaction, selectorOf(run));
      if (held === undefined) return false;
      await checkpoints.deleteRun(run.thread_id, run.run_id, transaction);
      await queue.removeRolledBack(transaction, run.thread_id, run.run_id);
      return true;
    });

  /**
   * The end of a threadless run: it leaves nothing behind. `outcome` is stored instead if another process reads
   * the run, and the sweep removes it later: whoever waits there would find neither events nor a result.
   */
  const removeThread = async (run: RunRow, outcome?: RunOutcome): Promise<{ waiting: number } | undefined> =>
    await database.transaction(async (transaction) => {
      await transaction.query("select 1 from threadloom.threads where thread_id = $1 for update", [
        run.thread_id,
      ]);
      const selector = selectorOf(run);
      const held = await queue.lockAttempt(transaction, selector);
      if (held === undefined) return undefined;
      if (outcome !== undefined && held.readerId !== null && held.readerId !== processId) {
        return await queue.finish(selector, outcome, { connection: transaction });
      }
      await checkpoints.deleteThread(run.thread_id, transaction);
      await transaction.query("delete from threadloom.threads where thread_id = $1", [run.thread_id]);
      return { waiting: 0 };
    });

  /**
   * Resolves when all events are in the log; with a failure if the database refuses them for good: another attempt would
   * come to the same end. Rejects if it is no longer this attempt's run, or if the database is away for too long.
   */
  const sealed = async (run: RunRow, channel: RunChannel): Promise<AttemptResult | undefined> => {
    try {
      await channel.seal();
      return undefined;
    } catch (error) {
      if (error instanceof LeaseLostError || isPassing(error)) throw error;
      logger.error({ err: error, run_id: run.run_id }, "the events of a run could not be stored");
      return { kind: "failed", error };
    }
  };

  /** Should this process die before it, or the database be away, the sweep does it. */
  const letNextStart = async (threadId: string): Promise<void> => {
    await queue.advance(threadId).catch((error: unknown) => {
      logger.debug({ err: error, thread_id: threadId }, "the next run of a thread has to wait for the sweep");
    });
  };

  const conclude = async (
    run: RunRow,
    channel: RunChannel,
    result: AttemptResult,
    circumstances: { isMine: () => boolean; creatorIsHere: boolean },
  ): Promise<RunEnding | undefined> => {
    const { isMine, creatorIsHere } = circumstances;
    const selector = selectorOf(run);
    if (result.kind === "stopped") {
      const { reason } = result;
      if (reason.kind === "lease-lost") return undefined;
      if (reason.kind === "process-failed") {
        await persist(() => queue.giveUpLease(selector), isMine);
        return undefined;
      }
      if (reason.kind === "shutdown") {
        const action = await persist(() => queue.handBack(selector), isMine);
        if (action === undefined) return undefined;
        // Asked for since the last heartbeat.
        return await conclude(
          run,
          channel,
          { kind: "stopped", reason: { kind: "cancel", action } },
          circumstances,
        );
      }
      if (reason.kind === "cancel" && reason.action === "rollback") {
        const undo = async (): Promise<boolean> =>
          run.delete_thread ? (await removeThread(run)) !== undefined : await rollBack(run);
        if (!(await persist(undo, isMine))) return undefined;
        if (!run.delete_thread) await letNextStart(run.thread_id);
        return {
          status: "rolled-back",
          error: null,
          values: () => undefined,
          interrupts: undefined,
          othersWait: true,
        };
      }
    }
    let outcome = await persist(() => outcomes.of(run, result), isMine);
    if (outcome.error !== null) channel.emit("error", () => toWireJson(outcome.error));
    // What readers were shown must be in the log before the run ends: afterwards it takes nothing any more.
    const refusal = await sealed(run, channel);
    if (refusal !== undefined && run.resumable) outcome = await outcomes.of(run, refusal);
    const { error } = outcome;
    faults.reached("before-finish");
    const lastCheckpoint = result.kind === "completed" ? result.lastUnsafe : undefined;
    const finished = await persist(async (isRetry) => {
      // One that came through the queue has a creator who may wait for it on another process.
      const removes = run.delete_thread && creatorIsHere;
      const ended = removes
        ? await removeThread(run, outcome)
        : await queue.finish(selector, outcome, { lastCheckpoint });
      if (ended !== undefined || !isRetry) return ended;
      // The try before may have been committed, and only its answer been lost.
      const found = await queue.endedAs(selector, outcome.status);
      return found === true || (found === "gone" && removes) ? { waiting: 1 } : undefined;
    }, isMine);
    faults.reached("after-finish");
    if (finished === undefined) return undefined;
    if (finished.waiting > 0) await letNextStart(run.thread_id);
    const completed = result.kind === "completed" ? result : undefined;
    /** All who wait for the run share one text: 120 of 14 MB were more than a process has. */
    let text: string | undefined;
    return {
      status: outcome.status,
      error,
      values: () => (text ??= completed?.values()),
      interrupts: completed?.interrupts,
      othersWait: finished.waiting > 0,
    };
  };

  return {
    /**
     * Ends a run whose last executor is gone and that must not be tried again: it was to be cancelled, or its
     * attempts are used up.
     */
    async concludeAbandoned(run: RunRow, result: AttemptResult): Promise<RunEnding | undefined> {
      const channel = new RunChannel({
        threadId: run.thread_id,
        runId: run.run_id,
        attempt: run.attempt,
        firstSeq: run.attempt * SEQ_PER_ATTEMPT,
        keep: false,
        ...(run.resumable || run.reader_id !== null
          ? {
              log: (events) => eventLog.append(selectorOf(run), events),
            }
          : {}),
      });
      const ending = await conclude(run, channel, result, { isMine: () => false, creatorIsHere: false });
      if (ending !== undefined) tellEnd(logger, run, ending);
      return ending;
    },

    /** Starts at once. `creatorIsHere`: the run was created by this process and started with that. */
    execute(
      run: ClaimedRunRow,
      creatorIsHere: boolean,
      { onGraphEnded, onReleased }: ExecutionEvents,
    ): Execution {
      const { run_id, thread_id, graph_id, attempt: number } = run;
      const log = logger.child({ run_id, thread_id, graph_id, attempt: number });
      const channel = hub.open({
        threadId: run.thread_id,
        runId: run.run_id,
        attempt: run.attempt,
        firstSeq: (run.attempt - 1) * SEQ_PER_ATTEMPT,
        keep: run.reader_id === processId,
        resumable: run.resumable,
        logged: run.reader_id !== null && run.reader_id !== processId,
      });
      const startedAt = performance.now();
      faults.reached("before-first-event");
      channel.emit("metadata", () => JSON.stringify({ run_id: run.run_id, attempt: run.attempt }));
      const attempt = graphExecutor.execute(run, channel, { onGraphEnded });
      let lost = false;
      const stop = (reason: StopReason): void => {
        if (reason.kind === "lease-lost") lost = true;
        attempt.stop(reason);
      };
      const timer = setTimeout(() => stop({ kind: "timeout" }), runTimeoutSeconds * 1_000);
      // Asked for while nobody had the run.
      if (run.cancel_action !== null) stop({ kind: "cancel", action: run.cancel_action });

      const settle = async (): Promise<RunEnding | undefined> => {
        let result = await attempt.result;
        clearTimeout(timer);
        if (
          result.kind === "failed" &&
          (database.isLoss(result.error) || result.error instanceof StateLostError) &&
          run.attempt < ATTEMPTS_AT_A_DATABASE
        ) {
          // Not the graph's fault, and not its end: it goes on from its last checkpoint.
          log.warn({ err: result.error }, "the database was away; the run goes back to the queue");
          result = { kind: "stopped", reason: { kind: "shutdown" } };
        }
        if (result.kind === "failed") log.warn({ err: result.error }, "the graph failed");
        let ending: RunEnding | undefined;
        try {
          ending = await conclude(run, channel, result, { isMine: () => !lost, creatorIsHere });
        } catch (error) {
          // The lease expires and the run is recovered from its last checkpoint.
          if (error instanceof LeaseLostError) log.warn("the lease was lost; another attempt has the run");
          else log.error({ err: error }, "the outcome of a run could not be stored");
        }
        if (ending === undefined) {
          hub.abandon(channel);
          log.debug("the attempt is over; the run is not");
        } else {
          hub.end(channel);
          tellEnd(logger, run, { ...ending, execMs: performance.now() - startedAt });
        }
        onReleased(ending);
        const isHandedBack =
          result.kind === "stopped" && ["shutdown", "process-failed"].includes(result.reason.kind);
        if (ending === undefined && !isHandedBack) {
          await tellIfDeleted(logger, run, performance.now() - startedAt, queue);
        }
        return ending;
      };
      // A threadless run leaves nothing behind that its values could be read from.
      if (run.delete_thread) attempt.wantValues();
      return {
        runId: run.run_id,
        threadId: run.thread_id,
        attempt: run.attempt,
        stop,
        wantValues: () => attempt.wantValues(),
        ended: settle(),
      };
    },
  };
};

export type Executor = ReturnType<typeof createExecutor>;
