import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../platform/database/database.ts";
import { assistantIdOf } from "../../platform/domain/assistant-ids.ts";
import { conflict, runNotFound, threadNotFound } from "../../platform/domain/errors.ts";
import { removeEnded } from "../../engine/queue/sql/remove-ended.ts";
import type { Cancellation } from "./cancellation.ts";
import { toRunRecord, toRunSummary } from "./record.ts";
import type { RunRepository, RunSelector } from "./repository.ts";
import type { RunRecord, RunSearch, RunSummary } from "./schemas.ts";
import type { NextPage, RunListOptions, RunSearcher } from "./search.ts";

export interface RecordServiceParts {
  database: Database;
  authorize: Authorize;
  repository: RunRepository;
  searcher: RunSearcher;
  cancellation: Pick<Cancellation, "cancel">;
}

export const createRecordService = (parts: RecordServiceParts) => {
  const { database, authorize, repository, searcher, cancellation } = parts;

  const mayRead = async (
    caller: Caller,
    { threadId, runId }: { threadId: string; runId?: string },
  ): Promise<Visibility<"threads">> =>
    await authorize(caller, "threads", "read", { thread_id: threadId, run_id: runId });

  return {
    async get(caller: Caller, selector: RunSelector): Promise<RunRecord> {
      const visibility = await mayRead(caller, selector);
      const row = await repository.find(visibility, selector);
      if (row === undefined) throw runNotFound(selector.runId);
      return toRunRecord(row);
    },

    async list(
      caller: Caller,
      threadId: string,
      options: RunListOptions,
      signal?: AbortSignal,
    ): Promise<{ runs: RunRecord[] } & NextPage> {
      const visibility = await mayRead(caller, { threadId });
      const { rows, ...next } = await searcher.list(visibility, threadId, options, signal);
      if (rows.length === 0 && !(await repository.threadExists(visibility, threadId))) {
        throw threadNotFound(threadId);
      }
      return { runs: rows.map(toRunRecord), ...next };
    },

    async search(
      caller: Caller,
      search: RunSearch,
      signal?: AbortSignal,
    ): Promise<{ runs: RunSummary[]; total: number | undefined } & NextPage> {
      const { thread_id, status, metadata, limit, offset } = search;
      const asked = { thread_id, status, metadata, limit, offset };
      const visibility = await authorize(caller, "threads", "search", asked);
      const assistantId = search.assistant_id;
      const named =
        assistantId === undefined ? search : { ...search, assistant_id: assistantIdOf(assistantId) };
      const { rows, total, ...next } = await searcher.page(visibility, named, signal);
      return { runs: rows.map(toRunSummary), total, ...next };
    },

    /** Removes an ended run and withdraws a pending one. Throws `conflict` for a running run. */
    async remove(caller: Caller, selector: RunSelector): Promise<void> {
      const asked = { thread_id: selector.threadId, run_id: selector.runId };
      const visibility = await authorize(caller, "threads", "delete", asked);
      const row = await repository.find(visibility, selector);
      if (row === undefined) throw runNotFound(selector.runId);
      if (row.status === "pending")
        return await cancellation.cancel(visibility, selector, "rollback", "requested");
      if (row.status === "running")
        throw conflict(`Run '${selector.runId}' is in progress; cancel it first.`);
      await removeEnded(database, selector);
    },
  };
};

export type RecordService = ReturnType<typeof createRecordService>;
