import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "../database/database.ts";
import type { Signals } from "../database/signals.ts";
import type { CancelAction, RunRow } from "../database/tables.ts";
import { isDatabaseUnavailable, mayHaveBeenCommitted } from "../database/unavailable.ts";
import type { Endings } from "../engine/endings.ts";
import type { Execution } from "../engine/execution.ts";
import type { RunKwargs } from "../engine/kwargs.ts";
import type { Worker } from "../engine/worker.ts";
import {
  assistantNotFound,
  conflict,
  eventNotKept,
  invalid,
  runNotFound,
  sqlState,
  threadBusy,
  ThreadloomError,
  threadNotFound,
  UNIQUE_VIOLATION,
} from "../lib/errors.ts";
import { assistantIdOf, newId } from "../lib/ids.ts";
import type { JsonObject } from "../lib/json.ts";
import type { EventLog } from "../streaming/event-log.ts";
import type { Hub, RunReader } from "../streaming/hub.ts";
import { decideMultitask } from "./multitask.ts";
import { toRunRecord } from "./record.ts";
import type { NewRun, RunListOptions, RunRepository, RunSelector } from "./repository.ts";
import { createRunResults, isTerminal, type CreatedRun, type RunResultsParts } from "./results.ts";
import type { RunBody, RunRecord, ThreadlessRunBody } from "./schemas.ts";

export interface RunServiceParts {
  database: Database;
  repository: RunRepository;
  worker: Worker;
  endings: Endings;
  hub: Hub;
  eventLog: EventLog;
  signals: Signals;
  processId: string;
  threads: RunResultsParts["threads"];
  checkpoints: {
    /** Throws `checkpointNotFound`. */
    assertExists(threadId: string, checkpointNamespace: string, checkpointId: string): Promise<void>;
    deleteRun(
      threadId: string,
      runId: string,
      transaction: Parameters<RunRepository["remove"]>[0],
    ): Promise<void>;
  };
}

/** Where a run goes: on a thread, on a thread that may have to be made, or on one of its own. */
type Placement =
  { kind: "thread"; threadId: string; createIfMissing: boolean } | { kind: "threadless"; keep: boolean };

/** How long a caller waits to hear whether its run was stored, when the database went away meanwhile. */
const UNCERTAIN_SECONDS = 10;
const RETRY_MS = 100;
/** What a timer of Node can hold: 24 days. */
const LONGEST_TIMER_MS = 2_147_483_647;

const durabilityOf = (body: RunBody | ThreadlessRunBody): RunKwargs["durability"] =>
  body.durability ?? (body.checkpoint_during === false ? "exit" : "async");

const checkpointIdIn = (config: JsonObject | undefined): string | undefined => {
  const id = (config?.configurable as JsonObject | undefined)?.checkpoint_id;
  return typeof id === "string" ? id : undefined;
};

/**
 * The checkpoint of the root graph that a reference means. One of a subgraph names it in its map; the run starts at
 * the root, which takes the subgraph along.
 */
const rootCheckpointId = (checkpoint: RunBody["checkpoint"]): string | undefined => {
  if (checkpoint === undefined || !checkpoint.checkpoint_ns) return checkpoint?.checkpoint_id;
  const root = checkpoint.checkpoint_map?.[""];
  if (typeof root === "string") return root;
  throw invalid(
    "'checkpoint' names a subgraph; its 'checkpoint_map' must name the checkpoint of the root graph as ''.",
  );
};

const toKwargs = (body: RunBody | ThreadlessRunBody): RunKwargs => {
  const checkpoint = "checkpoint" in body ? body.checkpoint : undefined;
  const checkpointId =
    rootCheckpointId(checkpoint) ??
    ("checkpoint_id" in body ? body.checkpoint_id : undefined) ??
    checkpointIdIn(body.config);
  return {
    // With both, the command wins: chat front ends send `input: {}` along.
    ...(body.command === undefined
      ? { input: body.input }
      : { command: body.command as RunKwargs["command"] }),
    ...(checkpointId === undefined
      ? {}
      : { checkpoint: { ...checkpoint, checkpoint_id: checkpointId } as RunKwargs["checkpoint"] }),
    ...(body.interrupt_before === undefined ? {} : { interrupt_before: body.interrupt_before }),
    ...(body.interrupt_after === undefined ? {} : { interrupt_after: body.interrupt_after }),
    stream_mode: body.stream_mode,
    stream_subgraphs: body.stream_subgraphs,
    durability: durabilityOf(body),
    on_disconnect: body.on_disconnect,
    ...(body.feedback_keys === undefined ? {} : { feedback_keys: body.feedback_keys }),
  };
};

/** The rules of runs: creating under the per-thread rule, waiting, reading along, cancelling. */
export const createRunService = (parts: RunServiceParts) => {
  const { database, repository, worker, endings, hub, eventLog, signals, processId, threads, checkpoints } =
    parts;

  const stopRunning = (runId: string, action: CancelAction): void => {
    const execution = worker.execution(runId);
    if (execution === undefined) signals.send("cancel", runId);
    else execution.stop({ kind: "cancel", action });
  };

  const announceEnd = (runId: string): void => signals.send("ended", runId);

  const announceAvailable = (runId: string, afterSeconds: number): void => {
    const waitMs = afterSeconds * 1_000;
    // One further away would ring at once; the worker's poll finds the run.
    if (waitMs > LONGEST_TIMER_MS) return;
    if (afterSeconds > 0) setTimeout(() => worker.wake(), waitMs).unref();
    else {
      worker.wake();
      signals.send("available", runId);
    }
  };

  /**
   * The slow way, for a thread that is not idle: under the thread's lock, with the decision in multitask.ts.
   * Undefined if the thread became idle or was made meanwhile, so that the fast way is open again.
   */
  const createBehindOthers = async (
    run: NewRun,
    createIfMissing: boolean,
    isRetry: boolean,
  ): Promise<RunRow | undefined> => {
    let cancelled: ReturnType<typeof decideMultitask> | undefined;
    const row = await database.transaction(async (transaction) => {
      if (!(await repository.lockThread(transaction, run.threadId))) {
        if (createIfMissing) return undefined;
        throw threadNotFound(run.threadId);
      }
      // Under the thread's lock it is certain whether the try before was committed.
      const stored = isRetry ? await repository.find(run, transaction) : undefined;
      if (stored !== undefined) return stored;
      const unfinished = await repository.lockUnfinished(transaction, run.threadId);
      const decision = decideMultitask(
        run.multitaskStrategy,
        unfinished.map(({ run_id, status }) => ({ runId: run_id, status })),
      );
      if (decision.kind === "reject") throw threadBusy(run.threadId);
      cancelled = decision;
      const pending = decision.cancel
        .filter((other) => other.status === "pending")
        .map((other) => other.runId);
      const running = decision.cancel
        .filter((other) => other.status === "running")
        .map((other) => other.runId);
      if (run.multitaskStrategy === "rollback") {
        // One that was recovered from a dead worker is pending, and yet has checkpoints.
        for (const runId of pending) await checkpoints.deleteRun(run.threadId, runId, transaction);
        await repository.remove(transaction, pending);
        await repository.askToCancel(transaction, running, "rollback");
      } else if (run.multitaskStrategy === "interrupt") {
        await repository.endPending(transaction, pending);
        await repository.askToCancel(transaction, running, "interrupt");
      }
      return await repository.createBehindOthers(transaction, run, pending.length);
    });
    if (cancelled?.kind === "accept") {
      for (const { runId, status, action } of cancelled.cancel) {
        if (status === "running") stopRunning(runId, action);
        else announceEnd(runId);
      }
    }
    return row;
  };

  const place = async (
    run: NewRun,
    placement: Placement,
    assistant: string,
    isRetry: boolean,
  ): Promise<CreatedRun> => {
    for (;;) {
      const reservation = run.afterSeconds > 0 ? undefined : worker.reserve();
      let row: RunRow | undefined;
      let execution: Execution | undefined;
      try {
        row =
          placement.kind === "thread"
            ? await repository.createOnIdleThread(run, reservation)
            : await repository.createWithThread(run, {}, reservation);
        if (row === undefined && placement.kind === "thread" && placement.createIfMissing) {
          row = await repository.createWithThread(run, {}, reservation);
        }
      } finally {
        if (reservation !== undefined) {
          if (row?.status === "running") execution = worker.start(row);
          else worker.cancelReservation();
        }
      }
      if (row === undefined) {
        if (!(await repository.assistantExists(run.assistantId))) throw assistantNotFound(assistant);
        row = await createBehindOthers(
          run,
          placement.kind === "thread" && placement.createIfMissing,
          isRetry,
        );
        if (row === undefined) continue;
      }
      if (row.status === "pending") announceAvailable(row.run_id, run.afterSeconds);
      return { row, execution };
    }
  };

  /**
   * A connection that dies between commit and answer leaves open whether the run is stored. Its caller would be told
   * 503 and ask again, and the run would be there twice; so its id is looked for until the database answers, and the
   * run is stored then if it is not there.
   */
  const placeOnce = async (run: NewRun, placement: Placement, assistant: string): Promise<CreatedRun> => {
    const giveUpAt = Date.now() + UNCERTAIN_SECONDS * 1_000;
    for (let isRetry = false; ;) {
      try {
        const row = isRetry ? await repository.find(run) : undefined;
        if (row === undefined) return await place(run, placement, assistant, isRetry);
        const isHere = row.status === "running" && row.worker_id === processId;
        return { row, execution: isHere ? worker.adopt(row) : undefined };
      } catch (error) {
        // Stored by the try before, at the same moment: it is found by the next.
        const isThere = isRetry && sqlState(error) === UNIQUE_VIOLATION;
        const isUncertain = mayHaveBeenCommitted(error) || (isRetry && isDatabaseUnavailable(error));
        if (!(isThere || isUncertain) || Date.now() > giveUpAt) throw error;
        isRetry = true;
        await delay(RETRY_MS);
      }
    }
  };

  const create = async (
    body: RunBody | ThreadlessRunBody,
    placement: Placement,
    { streamed = false }: { streamed?: boolean } = {},
  ): Promise<CreatedRun> => {
    const kwargs = toKwargs(body);
    const threadId = placement.kind === "thread" ? placement.threadId : newId();
    if (kwargs.checkpoint?.checkpoint_id !== undefined) {
      await checkpoints.assertExists(threadId, "", kwargs.checkpoint.checkpoint_id);
    }
    const run: NewRun = {
      runId: newId(),
      threadId,
      assistantId: assistantIdOf(body.assistant_id),
      multitaskStrategy: "multitask_strategy" in body ? body.multitask_strategy : "enqueue",
      metadata: body.metadata ?? {},
      config: body.config ?? {},
      context: body.context ?? {},
      kwargs: JSON.stringify(kwargs),
      resumable: body.stream_resumable,
      deleteThread: placement.kind === "threadless" && !placement.keep,
      afterSeconds: body.after_seconds ?? 0,
      readerId: streamed ? processId : null,
    };
    return await placeOnce(run, placement, body.assistant_id);
  };

  const find = async (selector: RunSelector): Promise<RunRow> => {
    const row = await repository.find(selector);
    if (row === undefined) throw runNotFound(selector.runId);
    return row;
  };

  const { waitForEnd, answer, forget } = createRunResults({
    repository,
    worker,
    endings,
    processId,
    threads,
  });

  const cancel = async (selector: RunSelector, action: CancelAction): Promise<void> => {
    const outcome = await database.transaction(async (transaction) => {
      if (!(await repository.lockThread(transaction, selector.threadId))) throw runNotFound(selector.runId);
      const run = await repository.lockRun(transaction, selector);
      if (run === undefined) throw runNotFound(selector.runId);
      if (isTerminal(run.status)) return "over";
      if (run.status === "running") {
        await repository.askToCancel(transaction, [selector.runId], action);
        return "running";
      }
      if (run.delete_thread) {
        await checkpoints.deleteRun(selector.threadId, selector.runId, transaction);
        await repository.removeThread(transaction, selector.threadId);
        return "ended";
      }
      if (action === "rollback") {
        await checkpoints.deleteRun(selector.threadId, selector.runId, transaction);
        await repository.remove(transaction, [selector.runId]);
      } else await repository.endPending(transaction, [selector.runId]);
      await repository.releaseThread(transaction, selector.threadId, 1);
      return "ended";
    });
    if (outcome === "running") stopRunning(selector.runId, action);
    if (outcome === "ended") announceEnd(selector.runId);
  };

  return {
    createOnThread: (threadId: string, body: RunBody, options?: { streamed: boolean }): Promise<CreatedRun> =>
      create(body, { kind: "thread", threadId, createIfMissing: body.if_not_exists === "create" }, options),

    createThreadless: (body: ThreadlessRunBody, options?: { streamed: boolean }): Promise<CreatedRun> =>
      create(body, { kind: "threadless", keep: body.on_completion === "keep" }, options),

    /** All of them or, if an assistant is missing, none. */
    async createBatch(bodies: ThreadlessRunBody[]): Promise<CreatedRun[]> {
      for (const { assistant_id: reference } of bodies) {
        if (!(await repository.assistantExists(assistantIdOf(reference)))) throw assistantNotFound(reference);
      }
      const created: CreatedRun[] = [];
      for (const body of bodies) {
        created.push(await create(body, { kind: "threadless", keep: body.on_completion === "keep" }));
      }
      return created;
    },

    async get(selector: RunSelector): Promise<RunRecord> {
      return toRunRecord(await find(selector));
    },

    /** The thread of a run that is known by its own id. */
    async locate(runId: string): Promise<RunSelector> {
      const threadId = await repository.threadOf(runId);
      if (threadId === undefined) throw runNotFound(runId);
      return { threadId, runId };
    },

    async list(threadId: string, options: RunListOptions): Promise<RunRecord[]> {
      const rows = await repository.list(threadId, options);
      if (rows.length === 0 && !(await repository.threadExists(threadId))) throw threadNotFound(threadId);
      return rows.map(toRunRecord);
    },

    /** A pending run is withdrawn; one in progress has to be cancelled first. */
    async remove(selector: RunSelector): Promise<void> {
      const row = await find(selector);
      if (row.status === "pending") return await cancel(selector, "rollback");
      if (row.status === "running")
        throw conflict(`Run '${selector.runId}' is in progress; cancel it first.`);
      await repository.remove(database, [selector.runId]);
    },

    /** The result of a run that was just created. */
    async result(created: CreatedRun): Promise<string> {
      const { row, execution } = created;
      const ended = await waitForEnd({ threadId: row.thread_id, runId: row.run_id }, execution);
      const text = await answer(row.thread_id, ended);
      await forget(created);
      return text;
    },

    forget,

    /** The result of a run, now or when it has ended. */
    async join(selector: RunSelector): Promise<string> {
      await find(selector);
      return await answer(selector.threadId, await waitForEnd(selector));
    },

    /** Reads along from the first event. */
    readCreated({ row }: CreatedRun): RunReader {
      return hub.read({ threadId: row.thread_id, runId: row.run_id, after: -1, resumable: row.resumable });
    },

    /** `after`: see ReadOptions. A threadless run's events outlive its row for a moment. */
    async read(selector: RunSelector, after: number | undefined): Promise<RunReader> {
      const row = await repository.find(selector);
      const held = hub.holds(selector.threadId, selector.runId);
      if (row === undefined && !held) throw runNotFound(selector.runId);
      if (row !== undefined && row.resumable && !held && after !== undefined && isTerminal(row.status)) {
        // A gap would look like a complete stream.
        const kept =
          after < 0 ? (await eventLog.lastSeq(row.run_id)) >= 0 : await eventLog.has(row.run_id, after);
        if (!kept) throw eventNotKept(row.run_id, after);
      }
      // Before the reading starts: from then on its events are logged, wherever it is executed.
      if (row !== undefined && !isTerminal(row.status) && row.worker_id !== processId) {
        await repository.announceReader(selector.runId, processId);
      }
      return hub.read({ ...selector, after, resumable: row?.resumable ?? false });
    },

    /** Ends a run that has not ended; `wait` until it has. Does nothing to one that has. */
    async cancel(selector: RunSelector, action: CancelAction, wait: boolean): Promise<void> {
      await cancel(selector, action);
      if (wait) await waitForEnd(selector);
    },

    async cancelMany(
      filter: Parameters<RunRepository["listUnfinished"]>[0],
      action: CancelAction,
    ): Promise<number> {
      const selected = await repository.listUnfinished(filter);
      for (const selector of selected) {
        try {
          await cancel(selector, action);
        } catch (error) {
          // It ended and was removed since it was listed: as good as cancelled.
          if (!(error instanceof ThreadloomError && error.kind === "not_found")) throw error;
        }
      }
      return selected.length;
    },
  };
};

export type RunService = ReturnType<typeof createRunService>;
