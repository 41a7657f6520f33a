import type { Database } from "../../platform/database/database.ts";
import { storeInputOnce } from "../queue/large-inputs.ts";
import type { ExecutedRunRow, RunRow } from "../../platform/database/tables.ts";
import { isPassing, retryPassing, unlessAlwaysCancelled } from "../../platform/database/passing-faults.ts";
import { LeaseLostError } from "../../platform/domain/errors.ts";
import type { Faults } from "../../platform/domain/faults.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { toWireJson } from "../../state/values/wire-json.ts";
import type { RunChannel } from "../events/channel.ts";
import { selectorOf, type RunOutcome } from "../queue/attempts.ts";
import type { RunEnds } from "../queue/ending.ts";
import type { FinalValues } from "../queue/final-values.ts";
import type { Queue } from "../queue/queue.ts";
import type { Finished } from "../queue/sql/finish.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { AttemptResult, GraphResult } from "../executors/executor.ts";
import type { SlowestNode } from "../../graphs/trace/recorder.ts";
import type { RunRecords, UsageTotal } from "../traces/attempt-records.ts";
import { createOutcomes, type OutcomesParts } from "./outcomes.ts";

export interface RunEnding {
  status: RunOutcome["status"] | "rolled-back";
  error: JsonObject | null;
  /** JSON of the final values, serialized on demand; undefined: read the thread. */
  values: () => string | undefined;
  /** JSON list of the pending interrupts; undefined if the run was not interrupted. */
  interrupts: (() => string) | undefined;
  /** Of the values: see `outputKeysOf`. */
  outputKeys?: readonly string[] | undefined;
  /** Includes the storing of the end; undefined if executed elsewhere. */
  execMs?: number;
  othersWait: boolean;
  /** Of the attempt; undefined without calls of models. */
  usage?: Readonly<UsageTotal>;
  /** Of the attempt's own nodes, not of subgraphs. */
  slowestNode?: SlowestNode;
  /** Of OpenTelemetry. */
  traceId?: string;
}

export interface EndsOutbox {
  toFinalValues(json: string | undefined, interrupts: string | undefined): FinalValues;
  onRecorded(): void;
}

export interface ConclusionParts extends OutcomesParts {
  database: Database;
  queue: Queue;
  ends: RunEnds;
  outbox: EndsOutbox | undefined;
  processId: string;
  faults: Faults;
}

export const CONTINUES = "a run lost its process; it continues from its last checkpoint";
export const CONTINUES_ALONE = `${CONTINUES}, in a process of its own`;

/** `how`: how the graph process ended, as the end of a sentence. */
export const resultOfLost = (
  { cancel_action, lost_attempts }: Pick<RunRow, "cancel_action" | "lost_attempts">,
  how?: string,
): GraphResult => {
  if (cancel_action !== null) return { kind: "stopped", reason: { kind: "cancel", action: cancel_action } };
  const attempts = lost_attempts + 1;
  const last = how === undefined ? "" : ` The last one ${how}.`;
  const error = new Error(
    `The run was given up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: each lost its process before it ended.${last}`,
  );
  return { kind: "failed", error: Object.assign(error, { name: "MaxAttemptsError" }) };
};

/** A record that the database refuses must not keep the run from ending. */
const withoutRefusedRecords = async <Ended>(
  outcome: RunOutcome,
  end: (outcome: RunOutcome) => Promise<Ended>,
  logger: Logger,
): Promise<Ended> => {
  try {
    return await end(outcome);
  } catch (error) {
    if (outcome.records === undefined || isPassing(error) || error instanceof LeaseLostError) throw error;
    const ended = await end({ ...outcome, records: undefined });
    logger.error({ err: error }, "the last part of a run's trace could not be stored");
    return ended;
  }
};

export const createConclusion = (parts: ConclusionParts) => {
  const { database, queue, ends, outbox, processId, faults, logger } = parts;
  const outcomes = createOutcomes(parts);

  /** Retries while the database is unreachable: an outcome must not be lost while the lease is held. */
  const persist = <T>(write: (isRetry: boolean) => Promise<T>, isMine: () => boolean): Promise<T> =>
    retryPassing(write, { isWanted: isMine, after: unlessAlwaysCancelled() });

  /**
   * Resolves with a failure if the database refuses events for good, since another attempt would fail too.
   * Rejects if the attempt lost the run or the database stays unreachable.
   */
  const endLog = async (run: ExecutedRunRow, channel: RunChannel): Promise<GraphResult | undefined> => {
    try {
      await channel.endLog();
      return undefined;
    } catch (error) {
      if (error instanceof LeaseLostError || isPassing(error)) throw error;
      logger.error({ err: error, run_id: run.run_id }, "the events of a run could not be stored");
      return { kind: "failed", error };
    }
  };

  /** If this fails, the sweep advances the thread. */
  const letNextStart = async (threadId: string): Promise<void> => {
    await queue.advance(threadId).catch((error: unknown) => {
      logger.debug({ err: error, thread_id: threadId }, "the next run of a thread has to wait for the sweep");
    });
  };

  /**
   * Returns undefined if the run continues elsewhere. `creatorIsHere`: this process created the run and started it at
   * once.
   */
  const conclude = async (
    run: ExecutedRunRow,
    channel: RunChannel,
    result: AttemptResult,
    isMine: () => boolean,
    creatorIsHere: boolean,
    records?: RunRecords,
  ): Promise<RunEnding | undefined> => {
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
        const cancelled: AttemptResult = { kind: "stopped", reason: { kind: "cancel", action } };
        return await conclude(run, channel, cancelled, isMine, creatorIsHere, records);
      }
      if (reason.kind === "cancel" && reason.action === "rollback") {
        // The usage needs the run's row.
        await records?.leave();
        const undo = async (): Promise<boolean> =>
          run.delete_thread
            ? (await ends.finishWithThread(selector, undefined, processId)) !== undefined
            : await ends.rollBack(selector);
        if (!(await persist(undo, isMine))) return undefined;
        if (run.kwargs.webhook !== undefined) outbox?.onRecorded();
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
    if (result.kind === "lost") {
      const kept = await persist(() => queue.giveUpAttempt(selector), isMine);
      if (kept === undefined) {
        const lost_attempts = run.lost_attempts + 1;
        const { run_id, thread_id, graph_id } = run;
        const next = queue.goesAlone({ lost_attempts }) ? CONTINUES_ALONE : CONTINUES;
        logger.warn({ run_id, thread_id, graph_id, lost_attempts }, next);
        return undefined;
      }
      return await conclude(run, channel, resultOfLost(kept, result.how), isMine, creatorIsHere, records);
    }
    let outcome = await persist(() => outcomes.of(run, result), isMine);
    if (outcome.error !== null) channel.emit("error", () => toWireJson(outcome.error));
    // The log accepts no events after the run's end.
    const refusal = await endLog(run, channel);
    if (refusal !== undefined && run.resumable) outcome = await outcomes.of(run, refusal);
    const completed = result.kind === "completed" ? result : undefined;
    /** Waiters share one text: 120 copies of 14 MB exceeded the memory of a process. */
    let text: string | undefined;
    const values = (): string | undefined => (text ??= completed?.values());
    const final = outbox !== undefined && run.kwargs.webhook !== undefined ? outbox : undefined;
    if (final !== undefined) {
      const isInterrupted = completed?.interrupts !== undefined;
      const last = values() ?? (await persist(() => outcomes.valuesOf(run, isInterrupted), isMine));
      outcome = { ...outcome, final: final.toFinalValues(last, completed?.interrupts?.()) };
    }
    outcome = { ...outcome, records: records?.last(outcome.status) };
    const { error } = outcome;
    faults.reached("before-finish");
    const lastCheckpoint = result.kind === "completed" ? result.lastUnsafe : undefined;
    // The creator of a queued run may wait on another process.
    const removes = run.delete_thread && creatorIsHere;
    if (removes) await records?.stored();
    const end = async (ended: RunOutcome): Promise<Finished | undefined> =>
      removes
        ? await ends.finishWithThread(selector, ended, processId)
        : await ends.finish(selector, ended, lastCheckpoint);
    const finished = await persist(async (isRetry) => {
      const ended = await withoutRefusedRecords(outcome, end, logger);
      if (ended !== undefined || !isRetry) return ended;
      // The earlier try may have been committed although its response was lost.
      const found = await queue.endedAs(selector, outcome.status);
      return found === true || (found === "gone" && removes) ? { waiting: 1 } : undefined;
    }, isMine);
    faults.reached("after-finish");
    if (finished === undefined) return undefined;
    records?.lastIsStored();
    final?.onRecorded();
    if (finished.pushes === true) outbox?.onRecorded();
    if (finished.waiting > 0) await letNextStart(run.thread_id);
    storeInputOnce(database, run, logger);
    return {
      status: outcome.status,
      error,
      values,
      interrupts: completed?.interrupts,
      outputKeys: completed?.outputKeys,
      othersWait: finished.waiting > 0,
    };
  };

  return conclude;
};
