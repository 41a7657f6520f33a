import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { retryPassing } from "../../../platform/database/passing-faults.ts";
import { eventNotKept, runNotFound } from "../../../platform/domain/errors.ts";
import { SEQ_PER_ATTEMPT } from "../../../engine/events/event-ids.ts";
import type { Hub } from "../../../engine/events/hub.ts";
import type { EventLog, RunEvent } from "../../../engine/events/log.ts";
import { withFailure, type RunReader } from "../../../engine/events/channel.ts";
import { announceReader } from "../../../engine/queue/sql/announce-reader.ts";
import { toWireJson } from "../../../state/values/wire-json.ts";
import { isTerminal } from "../record.ts";
import type { RunSelector } from "../repository.ts";
import type { CreatedRun, ResultReadOptions, RunResult, RunResults, RunResultsParts } from "./results.ts";

export interface JoiningServiceParts extends Pick<
  RunResultsParts,
  "database" | "repository" | "processId" | "everyThread"
> {
  authorize: Authorize;
  results: RunResults;
  hub: Hub;
  eventLog: EventLog;
}

/** After this time without the database, the stream's connection is cut. */
const PATIENCE_MS = 60_000;

export const createJoiningService = (parts: JoiningServiceParts) => {
  const { database, authorize, everyThread, repository, results, hub, eventLog, processId } = parts;
  const { waitForEnd, answer, forget } = results;

  /**
   * The event has the highest id of the run. `readsAll`: the reader came before the run began. If the log lacks all
   * events of a run that succeeded, such a reader is cut off.
   */
  const failureOf = async (
    selector: RunSelector,
    { after, readsAll }: { after: number | undefined; readsAll: boolean },
    isEmpty: boolean,
  ): Promise<RunEvent | "lost" | undefined> => {
    const row = await repository.find(everyThread, selector);
    if (readsAll && isEmpty && row?.status === "success") return "lost";
    if (!row?.error || !isTerminal(row.status)) return undefined;
    // The client has received the error earlier.
    const isLogged = async (): Promise<boolean> => (await eventLog.named(selector, "error", 1)).length > 0;
    if (after !== undefined && row.resumable && (await isLogged())) return undefined;
    return { seq: row.attempt * SEQ_PER_ATTEMPT, event: "error", data: toWireJson(row.error) };
  };

  /** Only logged events know their checkpoints. */
  const behind = async (
    selector: RunSelector,
    row: Pick<RunRow, "resumable"> | undefined,
    checkpointId: string,
  ): Promise<number> =>
    row?.resumable === true ? ((await eventLog.showing(selector, checkpointId)) ?? -1) : -1;

  const withEnd = (
    reader: RunReader,
    selector: RunSelector,
    given: { after: number | undefined; readsAll: boolean },
  ): RunReader =>
    withFailure(reader, (isEmpty) =>
      retryPassing(() => failureOf(selector, given, isEmpty), { forMs: PATIENCE_MS }),
    );

  const mayRead = async (caller: Caller, { threadId, runId }: RunSelector): Promise<Visibility<"threads">> =>
    await authorize(caller, "threads", "read", { thread_id: threadId, run_id: runId });

  /**
   * A deleted run's thread has an unknown owner, and its id may be reused. So a limited caller gets only events of own
   * runs.
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
    /** Rejects if the caller lost the right to read, or the thread is hidden now; a deleted thread hides nothing. */
    async assertStill(caller: Caller, selector: RunSelector): Promise<void> {
      const visibility = await mayRead(caller, selector);
      if (await repository.threadIsHidden(visibility, selector.threadId)) throw runNotFound(selector.runId);
    },

    /** Throws `runNotFound`. */
    async assertExists(caller: Caller, selector: RunSelector): Promise<void> {
      const visibility = await mayRead(caller, selector);
      if ((await repository.findAwaited(visibility, selector)) === undefined)
        throw runNotFound(selector.runId);
    },

    /** Throws `runNotFound`. */
    async locate(caller: Caller, runId: string): Promise<RunSelector> {
      const visibility = await authorize(caller, "threads", "read", { run_id: runId });
      const threadId = await repository.threadOf(visibility, runId);
      if (threadId === undefined) throw runNotFound(runId);
      return { threadId, runId };
    },

    async result(created: CreatedRun, options: ResultReadOptions): Promise<RunResult> {
      const { row, execution } = created;
      const selector = { threadId: row.thread_id, runId: row.run_id };
      const ended = await waitForEnd(selector, { execution, known: row, signal: options.signal });
      const answered = await answer(selector, ended, options);
      await forget(created);
      return { status: ended?.status ?? "rolled-back", ...answered };
    },

    forget,

    /** Throws `runNotFound`. */
    async join(caller: Caller, selector: RunSelector, options: ResultReadOptions): Promise<RunResult> {
      const visibility = await mayRead(caller, selector);
      if ((await repository.find(visibility, selector)) === undefined) throw runNotFound(selector.runId);
      const ended = await waitForEnd(selector, options);
      return { status: ended?.status ?? "rolled-back", ...(await answer(selector, ended, options)) };
    },

    readCreated(caller: Caller, { row, execution }: CreatedRun): RunReader {
      const selector = { threadId: row.thread_id, runId: row.run_id };
      const reader = hub.read({ ...selector, after: -1, resumable: row.resumable, caller });
      return execution !== undefined ? reader : withEnd(reader, selector, { after: -1, readsAll: true });
    },

    /**
     * `after`: see ReadOptions. Without it, `checkpointId` selects the events behind its state, or all if the run has
     * not shown this state.
     */
    async read(
      caller: Caller,
      selector: RunSelector,
      { after: named, checkpointId }: { after: number | undefined; checkpointId: string | undefined },
    ): Promise<RunReader> {
      const visibility = await mayRead(caller, selector);
      const { threadId, runId } = selector;
      let row = await repository.find(visibility, selector);
      // Fixed here: a short run may end before the log is read, and all its events would be skipped.
      let begin = row?.status === "pending" ? row.attempt * SEQ_PER_ATTEMPT - 1 : undefined;
      // Announced before the read: from then on the executing process logs the run's events.
      if (row !== undefined && !isTerminal(row.status) && row.worker_id !== processId) {
        const isAnnounced = await announceReader(database, selector, processId);
        // The run has ended, or this process has claimed it.
        if (!isAnnounced) row = await repository.find(visibility, selector);
        if (row?.status === "running") begin = undefined;
      }
      if (row === undefined && (await repository.threadIsHidden(visibility, threadId)))
        throw runNotFound(runId);
      if (row === undefined && !isLeftFor(caller, visibility, selector)) throw runNotFound(runId);
      const isAsked = checkpointId !== undefined && (named ?? -1) < 0;
      const after = isAsked ? await behind(selector, row, checkpointId) : named;
      const held = after !== undefined && hub.holdsAllAfter(threadId, runId, after);
      if (row !== undefined && row.resumable && !held && after !== undefined && isTerminal(row.status)) {
        // The client would take a stream with a gap for a complete one.
        const kept =
          after < 0 ? (await eventLog.lastSeq(selector)) >= 0 : await eventLog.hasAllAfter(selector, after);
        if (!kept) throw eventNotKept(row.run_id, after);
      }
      const reader = hub.read({
        ...selector,
        after: after ?? begin,
        resumable: row?.resumable ?? false,
        caller,
      });
      // Such a client receives the error from memory.
      if (held) return reader;
      return withEnd(reader, selector, { after, readsAll: begin !== undefined });
    },
  };
};

export type JoiningService = ReturnType<typeof createJoiningService>;
