import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { TracePart, TraceStorage } from "../../../engine/traces/storage.ts";
import type { Database } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { runNotFound } from "../../../platform/domain/errors.ts";
import { timestamp } from "../../../platform/lib/timestamps.ts";
import { isTerminal } from "../record.ts";
import type { RunRepository, RunSelector } from "../repository.ts";
import type { Span, Trace } from "./schemas.ts";

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

type AttemptTrace = Trace["attempts"][number];
type StoredSpan = Partial<Span> & { id?: number; dropped?: number };

/** `isRunning`: the attempt goes on, so that open spans may still end. */
const spansOf = (
  parts: readonly TracePart[],
  isRunning: boolean,
): Pick<AttemptTrace, "spans" | "dropped_spans"> => {
  const spans = new Map<number, Span>();
  let dropped = 0;
  for (const { spans: text } of parts) {
    for (const { dropped: more = 0, ...stored } of JSON.parse(`[${text}]`) as StoredSpan[]) {
      dropped += more;
      if (stored.id === undefined) continue;
      const open = { parent: null, end_ms: null, status: isRunning ? "running" : "lost" } as const;
      spans.set(stored.id, { ...open, ...spans.get(stored.id), ...stored } as Span);
    }
  }
  // The end of a span whose beginning was lost has no name.
  return { spans: [...spans.values()].filter(({ name }) => name !== undefined), dropped_spans: dropped };
};

/**
 * All attempts up to `lastAttempt`, in order.
 * @param isRunning whether the last one goes on
 */
const attemptsOf = (parts: readonly TracePart[], lastAttempt: number, isRunning: boolean): AttemptTrace[] =>
  Array.from({ length: lastAttempt }, (_, index): AttemptTrace => {
    const attempt = index + 1;
    const own = parts.filter((part) => part.attempt === attempt);
    const [first] = own;
    return {
      attempt,
      started_at: first === undefined ? null : timestamp(first.started_at),
      ...spansOf(own, isRunning && attempt === lastAttempt),
    };
  });

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
