import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { RunSelector } from "../queue/attempts.ts";

export interface BegunRun extends RunSelector {
  graphId: string;
  attempt: number;
  turn: number;
  resumable: boolean;
}

export interface ThreadHead {
  /** Grows with each ended attempt, see engine/queue/README.md. */
  over: number;
  running: number | null;
  /**
   * Distinguishes a recreated thread. Seconds since 1970 as text, because a timestamp's text depends on the
   * session's time zone.
   */
  createdAt: string;
}

/** Indexes: threads_pkey, runs_one_begun_per_thread. */
const HEADS = statement(
  { threadIds: "uuid[]" },
  (sql) => `select t.thread_id, t.turns - t.unfinished_runs as over, extract(epoch from
    t.created_at)::text as "createdAt",
    (select r.turn from threadloom.runs r where r.thread_id = t.thread_id and r.status = 'running' limit 1) as running
  from threadloom.threads t where t.thread_id = any(${sql.threadIds})`,
);

/**
 * Ended runs count only if logged, in memory here (`here`), or never begun. Reads all runs of the thread (8
 * ms for 10,000), so it follows only a change of the head (0.1 ms). Indexes: runs_by_thread, run_events_pkey.
 */
const NEXT = statement(
  { threadId: "uuid", from: "integer", here: "uuid[]" },
  (sql) => `select r.run_id, r.graph_id, r.turn, r.attempt, r.resumable from threadloom.runs r
  where r.thread_id = ${sql.threadId} and r.turn >= ${sql.from} and (r.status = 'running' or (r.status <> 'pending' and (
    r.run_id = any(${sql.here})
    or r.attempt = 0 or exists (select from threadloom.run_events e where e.thread_id = r.thread_id and e.run_id = r.run_id))))
  order by r.turn limit 1`,
);

interface NextRow extends Pick<BegunRun, "turn" | "attempt" | "resumable"> {
  run_id: string;
  graph_id: string;
}

const HEADS_AT_ONCE = 1_000;

/** See POLL_MS in readers/thread-reader.ts. */
const createHeads = (database: Database): ((threadId: string) => Promise<ThreadHead | undefined>) => {
  let next: { threadIds: Set<string>; heads: Promise<Map<string, ThreadHead>> } | undefined;

  const check = async (threadIds: ReadonlySet<string>): Promise<Map<string, ThreadHead>> => {
    await new Promise(setImmediate);
    if (next?.threadIds === threadIds) next = undefined;
    const rows = await HEADS.query<ThreadHead & { thread_id: string }>(database, {
      threadIds: [...threadIds],
    });
    return new Map(rows.map(({ thread_id: threadId, ...head }) => [threadId, head]));
  };

  return async (threadId) => {
    if (next === undefined || next.threadIds.size >= HEADS_AT_ONCE) {
      const threadIds = new Set<string>();
      next = { threadIds, heads: check(threadIds) };
    }
    const { threadIds, heads } = next;
    threadIds.add(threadId);
    return (await heads).get(threadId);
  };
};

export const createTurns = (database: Database) => ({
  head: createHeads(database),

  async next(threadId: string, from: number, here: readonly string[]): Promise<BegunRun | undefined> {
    const [row] = await NEXT.query<NextRow>(database, { threadId, from: Math.max(from, 1), here });
    if (row === undefined) return undefined;
    const { run_id: runId, graph_id: graphId, turn, attempt, resumable } = row;
    return { threadId, runId, graphId, turn, attempt, resumable };
  },
});

export type Turns = ReturnType<typeof createTurns>;
