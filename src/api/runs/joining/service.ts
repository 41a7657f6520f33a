import type { Once } from "../../../access/reauthorization/groups.ts";
import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { retryPassing } from "../../../platform/database/passing-faults.ts";
import { eventNotKept, runNotFound } from "../../../platform/domain/errors.ts";
import { SEQ_PER_ATTEMPT } from "../../../engine/events/event-ids.ts";
import type { Hub } from "../../../engine/events/hub.ts";
import type { EventLog, RunEvent } from "../../../engine/events/log.ts";
import type { RunReader } from "../../../engine/events/readers/channel-reader.ts";
import { withFailure } from "../../../engine/events/readers/failure-reader.ts";
import { announceReader } from "../../../engine/queue/sql/announce-reader.ts";
import { toWireJson } from "../../../state/values/wire-json.ts";
import { isTerminal } from "../record.ts";
import type { RunRepository, RunSelector } from "../repository.ts";
import type { CreatedRun, ResultReadOptions, RunResults } from "./results.ts";

export interface JoiningServiceParts {
  database: Database;
  authorize: Authorize;
  /** The server's own: for what it looks at while it waits, whoever for. */
  everyThread: Visibility<"threads">;
  repository: RunRepository;
  results: RunResults;
  hub: Hub;
  eventLog: EventLog;
  processId: string;
}

/** How long a stream's end waits for a database that is away; its connection is cut then. */
const PATIENCE_MS = 60_000;

/** Waiting for the results of runs, and reading along with them. */
export const createJoiningService = (parts: JoiningServiceParts) => {
  const { database, authorize, everyThread, repository, results, hub, eventLog, processId } = parts;
  const { waitForEnd, answer, forget } = results;

  /** The event that told of a failed run's error; its id is above all others of the run. */
  const failureOf = async (selector: RunSelector): Promise<RunEvent | undefined> => {
    const row = await repository.find(everyThread, selector);
    if (!row?.error || !isTerminal(row.status)) return undefined;
    return { seq: row.attempt * SEQ_PER_ATTEMPT, event: "error", data: toWireJson(row.error) };
  };

  /** Only what is kept for who comes back knows the checkpoints of its events. */
  const behind = async (
    selector: RunSelector,
    row: Pick<RunRow, "resumable"> | undefined,
    checkpointId: string,
  ): Promise<number> =>
    row?.resumable === true ? ((await eventLog.showing(selector, checkpointId)) ?? -1) : -1;

  const mayRead = async (caller: Caller, { threadId, runId }: RunSelector): Promise<Visibility<"threads">> =>
    await authorize(caller, "threads", "read", { thread_id: threadId, run_id: runId });

  /**
   * Whether a run that is gone has left events that the caller may see. Nothing says any more whose its thread was, and another
   * thread may have its id by now: who does not see everything sees only what is left of his own runs.
   */
  const isLeftFor = (
    caller: Caller,
    visibility: Visibility<"threads">,
    { threadId, runId }: RunSelector,
  ): boolean => {
    if (visibility.hidesNothing) return hub.holds(threadId, runId);
    return caller.kind === "user" && hub.holds(threadId, runId, caller.identity);
  };

  return {
    /**
     * Asks again for who reads a run or waits for it, its creator too. Rejects if he may not read any more, or the thread is
     * hidden from him by now; one that is gone hides nothing.
     */
    async assertStill(caller: Caller, selector: RunSelector, once: Once): Promise<void> {
      const { threadId, runId } = selector;
      await once(`run ${threadId} ${runId}`, async () => {
        const visibility = await mayRead(caller, selector);
        if (await repository.threadIsHidden(visibility, threadId)) throw runNotFound(runId);
      });
    },

    /** Throws `runNotFound` if the caller sees no such run. */
    async assertExists(caller: Caller, selector: RunSelector): Promise<void> {
      const visibility = await mayRead(caller, selector);
      if ((await repository.findAwaited(visibility, selector)) === undefined)
        throw runNotFound(selector.runId);
    },

    /** The thread of a run that is known by its own id. */
    async locate(caller: Caller, runId: string): Promise<RunSelector> {
      const visibility = await authorize(caller, "threads", "read", { run_id: runId });
      const threadId = await repository.threadOf(visibility, runId);
      if (threadId === undefined) throw runNotFound(runId);
      return { threadId, runId };
    },

    /** The result of a run that was just created, for who created it. */
    async result(created: CreatedRun, { signal, whenLarge }: ResultReadOptions): Promise<string> {
      const { row, execution } = created;
      const selector = { threadId: row.thread_id, runId: row.run_id };
      const ended = await waitForEnd(selector, { execution, known: row, signal });
      const text = await answer(selector, ended, whenLarge);
      await forget(created);
      return text;
    },

    forget,

    /** The result of a run, now or when it has ended. */
    async join(
      caller: Caller,
      selector: RunSelector,
      { signal, whenLarge }: ResultReadOptions,
    ): Promise<string> {
      const visibility = await mayRead(caller, selector);
      if ((await repository.find(visibility, selector)) === undefined) throw runNotFound(selector.runId);
      return await answer(selector, await waitForEnd(selector, { signal }), whenLarge);
    },

    /** Reads along from the first event, for who created the run. */
    readCreated({ row }: CreatedRun): RunReader {
      const { thread_id: threadId, run_id: runId, resumable } = row;
      return hub.read({ threadId, runId, after: -1, resumable, cameBeforeEnd: true });
    },

    /**
     * `after`: see ReadOptions. `checkpointId`, where that names no event: what comes behind the state of this checkpoint, or all
     * if the run has not shown that. A threadless run's events outlive its row for a moment.
     */
    async read(
      caller: Caller,
      selector: RunSelector,
      { after: named, checkpointId }: { after: number | undefined; checkpointId: string | undefined },
    ): Promise<RunReader> {
      const visibility = await mayRead(caller, selector);
      const { threadId, runId } = selector;
      let row = await repository.find(visibility, selector);
      // Before the reading starts: from then on its events are logged, wherever it is executed.
      if (row !== undefined && !isTerminal(row.status) && row.worker_id !== processId) {
        const isAnnounced = await announceReader(database, selector, processId);
        // The run has ended meanwhile, or this process has claimed it.
        if (!isAnnounced) row = await repository.find(visibility, selector);
      }
      if (row === undefined && (await repository.threadIsHidden(visibility, threadId)))
        throw runNotFound(runId);
      if (row === undefined && !isLeftFor(caller, visibility, selector)) throw runNotFound(runId);
      const isAsked = checkpointId !== undefined && (named ?? -1) < 0;
      const after = isAsked ? await behind(selector, row, checkpointId) : named;
      const held = after !== undefined && hub.holdsAllAfter(threadId, runId, after);
      if (row !== undefined && row.resumable && !held && after !== undefined && isTerminal(row.status)) {
        // A gap would look like a complete stream.
        const kept =
          after < 0 ? (await eventLog.lastSeq(selector)) >= 0 : await eventLog.hasAllAfter(selector, after);
        if (!kept) throw eventNotKept(row.run_id, after);
      }
      // Told here, not by a look into the log later: a short run may have ended by then, and all of it would be left out.
      const begin = row?.status === "pending" ? row.attempt * SEQ_PER_ATTEMPT - 1 : undefined;
      const reader = hub.read({
        ...selector,
        after: after ?? begin,
        resumable: row?.resumable ?? false,
        cameBeforeEnd: row !== undefined && !isTerminal(row.status),
      });
      // Whoever names an event where all are kept has seen the error, or will.
      if (after !== undefined && (held || row?.resumable)) return reader;
      return withFailure(reader, () => retryPassing(() => failureOf(selector), { forMs: PATIENCE_MS }));
    },
  };
};

export type JoiningService = ReturnType<typeof createJoiningService>;
