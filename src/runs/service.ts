import type { Database } from "../database/database.ts";
import { retryPassing } from "../database/passing-faults.ts";
import type { Signals } from "../database/signals.ts";
import type { CancelAction, RunRow } from "../database/tables.ts";
import type { Endings } from "../engine/endings.ts";
import type { Worker } from "../engine/worker/worker.ts";
import { conflict, eventNotKept, runNotFound, threadNotFound } from "../lib/errors.ts";
import { assistantIdOf } from "../lib/ids.ts";
import type { Logger } from "../lib/logger.ts";
import { toWireJson } from "../values/wire-json.ts";
import { SEQ_PER_ATTEMPT, type EventLog, type RunEvent } from "../events/log.ts";
import { withFailure } from "../events/readers/failure-reader.ts";
import type { Hub } from "../events/hub.ts";
import type { RunReader } from "../events/readers/channel-reader.ts";
import { announceReader } from "../queue/sql/announce-reader.ts";
import { removeEnded } from "../queue/sql/remove-ended.ts";
import { createAnnouncements } from "./announcements.ts";
import { createCancellation } from "./cancellation.ts";
import { createRunCreation, type RunCreationParts } from "./creation.ts";
import { isTerminal, toRunRecord, toRunSummary } from "./record.ts";
import type { RunRepository, RunSelector } from "./repository.ts";
import { requestedRun, type Placement } from "./requests.ts";
import { createRunResults, type CreatedRun, type ResultAsking, type RunResultsParts } from "./results.ts";
import type { RunBody, RunRecord, RunSearch, RunSummary, ThreadlessRunBody } from "./schemas.ts";
import type { RunListOptions, RunSearcher } from "./search.ts";

export interface RunServiceParts {
  database: Database;
  repository: RunRepository;
  searcher: RunSearcher;
  worker: Worker;
  endings: Endings;
  hub: Hub;
  eventLog: EventLog;
  signals: Signals;
  processId: string;
  threadTtl: RunCreationParts["threadTtl"];
  recursionLimitMax: RunCreationParts["recursionLimitMax"];
  threads: RunResultsParts["threads"];
  checkpoints: RunCreationParts["checkpoints"];
  logger: Logger;
}

/** How long a stream's end waits for a database that is away; its connection is cut then. */
const PATIENCE_MS = 60_000;

/** On a thread of the run's own, unless the body names one. */
const placementOf = (body: ThreadlessRunBody): Placement =>
  body.thread_id === undefined
    ? { kind: "threadless", keep: body.on_completion === "keep" }
    : { kind: "thread", threadId: body.thread_id, createIfMissing: body.if_not_exists === "create" };

/** The rules of runs: creating under the per-thread rule, waiting, reading along, cancelling. */
export const createRunService = (parts: RunServiceParts) => {
  const { database, repository, worker, endings, hub, eventLog } = parts;
  const { signals, processId, threads, checkpoints, logger } = parts;

  const announcements = createAnnouncements(worker, signals, logger);
  const creation = createRunCreation({ ...parts, announcements });

  const find = async (selector: RunSelector): Promise<RunRow> => {
    const row = await repository.find(selector);
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
    threads,
  });

  const { cancel, cancelMany } = createCancellation({ database, announcements, checkpoints });

  /** The event that told of a failed run's error; its id is above all others of the run. */
  const failureOf = async (selector: RunSelector): Promise<RunEvent | undefined> => {
    const row = await repository.find(selector);
    if (!row?.error || !isTerminal(row.status)) return undefined;
    return { seq: row.attempt * SEQ_PER_ATTEMPT, event: "error", data: toWireJson(row.error) };
  };

  return {
    async createOnThread(
      threadId: string,
      body: RunBody,
      { streamed = false }: { streamed?: boolean } = {},
    ): Promise<CreatedRun> {
      const createIfMissing = body.if_not_exists === "create";
      const placement: Placement = { kind: "thread", threadId, createIfMissing };
      return await creation.create(requestedRun(body, placement, streamed ? processId : null));
    },

    async createThreadless(
      body: ThreadlessRunBody,
      { streamed = false }: { streamed?: boolean } = {},
    ): Promise<CreatedRun> {
      return await creation.create(requestedRun(body, placementOf(body), streamed ? processId : null));
    },

    /** All of them or, if one is refused, none. */
    async createBatch(bodies: ThreadlessRunBody[]): Promise<RunRecord[]> {
      const rows = await creation.createAll(
        bodies.map((body) => requestedRun(body, placementOf(body), null)),
      );
      return rows.map(toRunRecord);
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

    /** Runs of a thread. `next`: undefined on the last page. */
    async list(
      threadId: string,
      options: RunListOptions,
      signal?: AbortSignal,
    ): Promise<{ runs: RunRecord[]; next: number | undefined }> {
      const { rows, next } = await parts.searcher.list(threadId, options, signal);
      if (rows.length === 0 && !(await repository.threadExists(threadId))) throw threadNotFound(threadId);
      return { runs: rows.map(toRunRecord), next };
    },

    /** Runs of all threads. `total`: undefined if more match than are counted; `next`: undefined on the last page. */
    async search(
      search: RunSearch,
      signal?: AbortSignal,
    ): Promise<{ runs: RunSummary[]; total: number | undefined; next: number | undefined }> {
      const assistantId = search.assistant_id;
      const named =
        assistantId === undefined ? search : { ...search, assistant_id: assistantIdOf(assistantId) };
      const { rows, total, next } = await parts.searcher.page(named, signal);
      return { runs: rows.map(toRunSummary), total, next };
    },

    /** A pending run is withdrawn; one in progress has to be cancelled first. */
    async remove(selector: RunSelector): Promise<void> {
      const row = await find(selector);
      if (row.status === "pending") return await cancel(selector, "rollback");
      if (row.status === "running")
        throw conflict(`Run '${selector.runId}' is in progress; cancel it first.`);
      await removeEnded(database, selector.runId);
    },

    /** The result of a run that was just created. */
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
    async join(selector: RunSelector, { signal, whenLarge }: ResultAsking): Promise<string> {
      await find(selector);
      return await answer(selector.threadId, await waitForEnd(selector, { signal }), whenLarge);
    },

    /** Reads along from the first event. */
    readCreated({ row }: CreatedRun): RunReader {
      return hub.read({ threadId: row.thread_id, runId: row.run_id, after: -1, resumable: row.resumable });
    },

    /** `after`: see ReadOptions. A threadless run's events outlive its row for a moment. */
    async read(selector: RunSelector, after: number | undefined): Promise<RunReader> {
      const row = await repository.find(selector);
      const { threadId, runId } = selector;
      if (row === undefined && !hub.holds(threadId, runId)) throw runNotFound(runId);
      const held = after !== undefined && hub.holdsAllAfter(threadId, runId, after);
      if (row !== undefined && row.resumable && !held && after !== undefined && isTerminal(row.status)) {
        // A gap would look like a complete stream.
        const kept =
          after < 0
            ? (await eventLog.lastSeq(row.run_id)) >= 0
            : await eventLog.hasAllAfter(row.run_id, after);
        if (!kept) throw eventNotKept(row.run_id, after);
      }
      // Before the reading starts: from then on its events are logged, wherever it is executed.
      if (row !== undefined && !isTerminal(row.status) && row.worker_id !== processId) {
        await announceReader(database, runId, processId);
      }
      const reader = hub.read({ ...selector, after, resumable: row?.resumable ?? false });
      // Whoever names an event where all are kept has seen the error, or will.
      if (after !== undefined && (held || row?.resumable)) return reader;
      return withFailure(reader, () => retryPassing(() => failureOf(selector), { forMs: PATIENCE_MS }));
    },

    /** Ends a run that has not ended; `wait`: until it has. Does nothing to one that has. */
    async cancel(
      selector: RunSelector,
      action: CancelAction,
      wait: { signal: AbortSignal } | undefined,
    ): Promise<void> {
      await cancel(selector, action);
      if (wait !== undefined) await waitForEnd(selector, wait);
    },

    cancelMany,
  };
};

export type RunService = ReturnType<typeof createRunService>;
