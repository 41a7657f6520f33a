import type { Authorize } from "../access/authorize.ts";
import type { Caller } from "../access/caller.ts";
import type { Visibility } from "../access/visibility.ts";
import type { Database } from "../database/database.ts";
import { retryPassing } from "../database/passing-faults.ts";
import type { Signals } from "../database/signals.ts";
import type { CancelAction, RunRow } from "../database/tables.ts";
import type { Endings } from "../engine/endings.ts";
import type { Worker } from "../engine/worker/worker.ts";
import { conflict, eventNotKept, runNotFound, threadNotFound } from "../domain/errors.ts";
import { assistantIdOf } from "../domain/assistant-ids.ts";
import type { WhenLarge } from "../lib/large-answers.ts";
import { toWireJson } from "../values/wire-json.ts";
import { SEQ_PER_ATTEMPT } from "../events/event-ids.ts";
import type { EventLog, RunEvent } from "../events/log.ts";
import { withFailure } from "../events/readers/failure-reader.ts";
import type { Hub } from "../events/hub.ts";
import type { RunReader } from "../events/readers/channel-reader.ts";
import type { RunEnds } from "../queue/ending.ts";
import type { CreationRights } from "../queue/sql/create.ts";
import { announceReader } from "../queue/sql/announce-reader.ts";
import { removeEnded } from "../queue/sql/remove-ended.ts";
import { createAnnouncements } from "./announcements.ts";
import { createCancellation, type UnfinishedFilter } from "./cancellation.ts";
import { createRunCreation, type RunCreationParts } from "./creation.ts";
import { isTerminal, toRunRecord, toRunSummary } from "./record.ts";
import type { RunRepository, RunSelector } from "./repository.ts";
import { requestedRun, type Placement } from "./requests.ts";
import { createRunResults, type CreatedRun, type ResultAsking, type RunResultsParts } from "./results.ts";
import type { RunBody, RunRecord, RunSearch, RunSummary, ThreadlessRunBody } from "./schemas.ts";
import type { RunListOptions, RunSearcher } from "./search.ts";

export interface RunServiceParts {
  database: Database;
  authorize: Authorize;
  /** The server's own: for what it looks at while it waits, whoever for. */
  everyThread: Visibility<"threads">;
  repository: RunRepository;
  searcher: RunSearcher;
  worker: Worker;
  endings: Endings;
  ends: RunEnds;
  hub: Hub;
  eventLog: EventLog;
  signals: Signals;
  processId: string;
  threadTtl: RunCreationParts["threadTtl"];
  recursionLimitMax: RunCreationParts["recursionLimitMax"];
  threads: RunResultsParts["threads"];
  checkpoints: RunCreationParts["checkpoints"];
}

/** How long a stream's end waits for a database that is away; its connection is cut then. */
const PATIENCE_MS = 60_000;

/** On a thread of the run's own, unless the body names one. */
const placementOf = (body: ThreadlessRunBody): Placement =>
  body.thread_id === undefined
    ? { kind: "threadless", keep: body.on_completion === "keep" }
    : { kind: "thread", threadId: body.thread_id, createIfMissing: body.if_not_exists === "create" };

/**
 * The rules of runs: creating under the per-thread rule, waiting, reading along, cancelling. `caller` is who asks: a run
 * is visible with its thread, and what is not visible is as if it were not there.
 */
export const createRunService = (parts: RunServiceParts) => {
  const { database, authorize, everyThread, repository, worker, endings, hub, eventLog } = parts;
  const { signals, processId, threads } = parts;

  const announcements = createAnnouncements(worker, signals, endings);
  const creation = createRunCreation({ ...parts, announcements });

  /** Creating a run executes its assistant: who may not read that must not see through its runs what it does. */
  const rightsOf = async (caller: Caller): Promise<CreationRights> => ({
    threads: await authorize(caller, "threads", "create_run"),
    assistants: await authorize(caller, "assistants", "read"),
  });

  const find = async (visibility: Visibility<"threads">, selector: RunSelector): Promise<RunRow> => {
    const row = await repository.find(visibility, selector);
    if (row === undefined) throw runNotFound(selector.runId);
    return row;
  };

  const { waitForEnd, answer, forget } = createRunResults({
    database,
    repository,
    worker,
    endings,
    signals,
    processId,
    everyThread,
    threads,
  });

  const cancellation = createCancellation({ database, ends: parts.ends, announcements });

  /** The event that told of a failed run's error; its id is above all others of the run. */
  const failureOf = async (selector: RunSelector): Promise<RunEvent | undefined> => {
    const row = await repository.find(everyThread, selector);
    if (!row?.error || !isTerminal(row.status)) return undefined;
    return { seq: row.attempt * SEQ_PER_ATTEMPT, event: "error", data: toWireJson(row.error) };
  };

  return {
    async createOnThread(
      caller: Caller,
      threadId: string,
      body: RunBody,
      { streamed = false }: { streamed?: boolean } = {},
    ): Promise<CreatedRun> {
      const createIfMissing = body.if_not_exists === "create";
      const placement: Placement = { kind: "thread", threadId, createIfMissing };
      const rights = await rightsOf(caller);
      return await creation.create(rights, requestedRun(body, placement, streamed ? processId : null));
    },

    async createThreadless(
      caller: Caller,
      body: ThreadlessRunBody,
      { streamed = false }: { streamed?: boolean } = {},
    ): Promise<CreatedRun> {
      const rights = await rightsOf(caller);
      return await creation.create(
        rights,
        requestedRun(body, placementOf(body), streamed ? processId : null),
      );
    },

    /** All of them or, if one is refused, none. */
    async createBatch(caller: Caller, bodies: ThreadlessRunBody[]): Promise<RunRecord[]> {
      const rows = await creation.createAll(
        await rightsOf(caller),
        bodies.map((body) => requestedRun(body, placementOf(body), null)),
      );
      return rows.map(toRunRecord);
    },

    /** `whenLarge` is awaited before a large input is read. */
    async get(caller: Caller, selector: RunSelector, whenLarge: WhenLarge): Promise<RunRecord> {
      const visibility = await authorize(caller, "threads", "read");
      const row = await repository.findWithRoom(visibility, selector, whenLarge);
      if (row === undefined) throw runNotFound(selector.runId);
      return toRunRecord(row);
    },

    /** Throws `runNotFound` if the caller sees no such run. */
    async assertThere(caller: Caller, selector: RunSelector): Promise<void> {
      const visibility = await authorize(caller, "threads", "read");
      if ((await repository.findAwaited(visibility, selector)) === undefined)
        throw runNotFound(selector.runId);
    },

    /** The thread of a run that is known by its own id. */
    async locate(caller: Caller, runId: string): Promise<RunSelector> {
      const threadId = await repository.threadOf(await authorize(caller, "threads", "read"), runId);
      if (threadId === undefined) throw runNotFound(runId);
      return { threadId, runId };
    },

    /** Runs of a thread. `next`: undefined on the last page. */
    async list(
      caller: Caller,
      threadId: string,
      options: RunListOptions,
      signal?: AbortSignal,
    ): Promise<{ runs: RunRecord[]; next: number | undefined }> {
      const visibility = await authorize(caller, "threads", "read");
      const { rows, next } = await parts.searcher.list(visibility, threadId, options, signal);
      if (rows.length === 0 && !(await repository.threadExists(visibility, threadId))) {
        throw threadNotFound(threadId);
      }
      return { runs: rows.map(toRunRecord), next };
    },

    /** Runs of all threads. `total`: undefined if more match than are counted; `next`: undefined on the last page. */
    async search(
      caller: Caller,
      search: RunSearch,
      signal?: AbortSignal,
    ): Promise<{ runs: RunSummary[]; total: number | undefined; next: number | undefined }> {
      const visibility = await authorize(caller, "threads", "search");
      const assistantId = search.assistant_id;
      const named =
        assistantId === undefined ? search : { ...search, assistant_id: assistantIdOf(assistantId) };
      const { rows, total, next } = await parts.searcher.page(visibility, named, signal);
      return { runs: rows.map(toRunSummary), total, next };
    },

    /** A pending run is withdrawn; one in progress has to be cancelled first. */
    async remove(caller: Caller, selector: RunSelector): Promise<void> {
      const visibility = await authorize(caller, "threads", "delete");
      const row = await find(visibility, selector);
      if (row.status === "pending") return await cancellation.cancel(visibility, selector, "rollback");
      if (row.status === "running")
        throw conflict(`Run '${selector.runId}' is in progress; cancel it first.`);
      await removeEnded(database, selector);
    },

    /** The result of a run that was just created, for who created it. */
    async result(created: CreatedRun, { signal, whenLarge }: ResultAsking): Promise<string> {
      const { row, execution } = created;
      const selector = { threadId: row.thread_id, runId: row.run_id };
      const ended = await waitForEnd(selector, { execution, known: row, signal });
      const text = await answer(row.thread_id, ended, whenLarge);
      await forget(created);
      return text;
    },

    forget,

    /** The result of a run, now or when it has ended. */
    async join(caller: Caller, selector: RunSelector, { signal, whenLarge }: ResultAsking): Promise<string> {
      await find(await authorize(caller, "threads", "read"), selector);
      return await answer(selector.threadId, await waitForEnd(selector, { signal }), whenLarge);
    },

    /** Reads along from the first event, for who created the run. */
    readCreated({ row }: CreatedRun): RunReader {
      return hub.read({ threadId: row.thread_id, runId: row.run_id, after: -1, resumable: row.resumable });
    },

    /** `after`: see ReadOptions. A threadless run's events outlive its row for a moment. */
    async read(caller: Caller, selector: RunSelector, after: number | undefined): Promise<RunReader> {
      const visibility = await authorize(caller, "threads", "read");
      const row = await repository.find(visibility, selector);
      const { threadId, runId } = selector;
      if (row === undefined && (await repository.threadIsHidden(visibility, threadId)))
        throw runNotFound(runId);
      if (row === undefined && !hub.holds(threadId, runId)) throw runNotFound(runId);
      const held = after !== undefined && hub.holdsAllAfter(threadId, runId, after);
      if (row !== undefined && row.resumable && !held && after !== undefined && isTerminal(row.status)) {
        // A gap would look like a complete stream.
        const kept =
          after < 0 ? (await eventLog.lastSeq(selector)) >= 0 : await eventLog.hasAllAfter(selector, after);
        if (!kept) throw eventNotKept(row.run_id, after);
      }
      // Before the reading starts: from then on its events are logged, wherever it is executed.
      if (row !== undefined && !isTerminal(row.status) && row.worker_id !== processId) {
        await announceReader(database, { threadId, runId }, processId);
      }
      // Told here, not by a look into the log later: a short run may have ended by then, and all of it would be left out.
      const begin = row?.status === "pending" ? row.attempt * SEQ_PER_ATTEMPT - 1 : undefined;
      const reader = hub.read({ ...selector, after: after ?? begin, resumable: row?.resumable ?? false });
      // Whoever names an event where all are kept has seen the error, or will.
      if (after !== undefined && (held || row?.resumable)) return reader;
      return withFailure(reader, () => retryPassing(() => failureOf(selector), { forMs: PATIENCE_MS }));
    },

    /** Ends a run that has not ended; `wait`: until it has. Does nothing to one that has. */
    async cancel(
      caller: Caller,
      selector: RunSelector,
      action: CancelAction,
      wait: { signal: AbortSignal } | undefined,
    ): Promise<void> {
      await cancellation.cancel(await authorize(caller, "threads", "update"), selector, action);
      if (wait !== undefined) await waitForEnd(selector, wait);
    },

    /** Ends a run whose creator has left: whoever creates one may say that it is to end then. */
    async abandon({ row }: CreatedRun): Promise<void> {
      await cancellation.cancel(everyThread, { threadId: row.thread_id, runId: row.run_id }, "interrupt");
    },

    /** Answers how many of the caller's runs were there to cancel. */
    async cancelMany(caller: Caller, filter: UnfinishedFilter, action: CancelAction): Promise<number> {
      return await cancellation.cancelMany(await authorize(caller, "threads", "update"), filter, action);
    },
  };
};

export type RunService = ReturnType<typeof createRunService>;
