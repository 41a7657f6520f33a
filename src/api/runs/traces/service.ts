import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { TraceStorage } from "../../../engine/traces/storage.ts";
import type { Database } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { runNotFound } from "../../../platform/domain/errors.ts";
import { timestamp } from "../../../platform/lib/timestamps.ts";
import { isTerminal } from "../record.ts";
import type { RunRepository, RunSelector } from "../repository.ts";
import type { Trace } from "./schemas.ts";
import { attemptsOf } from "./spans.ts";

export interface TraceServiceParts {
  authorize: Authorize;
  database: Database;
  repository: RunRepository;
  traces: TraceStorage;
}

/** The end of the run before. Index: runs_by_thread. */
const ENDED_BEFORE = statement(
  { threadId: "uuid", createdAt: "timestamptz", runId: "uuid" },
  (sql) => `select updated_at as ended_at from threadloom.runs
  where thread_id = ${sql.threadId} and created_at <= ${sql.createdAt} and run_id <> ${sql.runId}
  order by created_at desc limit 1`,
);

const msBetween = (from: Date, to: Date): number => Math.max(0, to.getTime() - from.getTime());

const isAnswer = ({ kwargs }: RunRow): boolean =>
  (kwargs.command as { resume?: unknown } | null | undefined)?.resume != null;

/** A trace is visible with its run. */
export const createTraceService = ({ authorize, database, repository, traces }: TraceServiceParts) => {
  const answeredAfterMs = async (row: RunRow): Promise<number | null> => {
    if (!isAnswer(row)) return null;
    const { thread_id: threadId, run_id: runId, created_at: createdAt } = row;
    const [before] = await ENDED_BEFORE.query<{ ended_at: Date }>(database, { threadId, createdAt, runId });
    return before === undefined ? null : msBetween(before.ended_at, createdAt);
  };

  return {
    /** Throws `runNotFound`. */
    async get(caller: Caller, selector: RunSelector): Promise<Trace> {
      const asked = { thread_id: selector.threadId, run_id: selector.runId };
      const visibility = await authorize(caller, "threads", "read", asked);
      const row = await repository.find(visibility, selector);
      if (row === undefined) throw runNotFound(selector.runId);
      const [parts, usage, answered] = await Promise.all([
        traces.read(selector),
        traces.usageOf(selector),
        answeredAfterMs(row),
      ]);
      const { started_at: startedAt } = row;
      return {
        run_id: row.run_id,
        thread_id: row.thread_id,
        status: row.status,
        created_at: timestamp(row.created_at),
        queue_ms: startedAt && msBetween(row.available_at, startedAt),
        answered_after_ms: answered,
        run_ms: startedAt !== null && isTerminal(row.status) ? msBetween(startedAt, row.updated_at) : null,
        attempts: attemptsOf(parts, row.attempt, row.status === "running"),
        usage,
      };
    },
  };
};

export type TraceService = ReturnType<typeof createTraceService>;
