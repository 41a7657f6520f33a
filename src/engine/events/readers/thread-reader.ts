import type { Database } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { RunSelector } from "../../queue/attempts.ts";
import type { RunReader } from "../channel.ts";
import { threadOffset, turnOf } from "../event-ids.ts";
import type { RunEvent } from "../log.ts";
import { News, patiently } from "../waiting.ts";

export interface BegunRun extends RunSelector {
  graphId: string;
  attempt: number;
  turn: number;
  resumable: boolean;
}

/** A run without a row, and the turn of its end. */
export interface GoneRun {
  runId: string;
  turn: number;
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

/** See POLL_MS. */
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

export interface ThreadEvents {
  runId: string;
  run: BegunRun;
  events: RunEvent[];
  /** The run has ended, and no events follow. */
  isOver: boolean;
}

export interface ThreadReader {
  /**
   * Waits while no run executes. `"lost"`: drop the connection; the client resumes after its last
   * `threadSeq`. `"ended"`: only after `close`. `"recreated"`: the thread was created anew, so ids start
   * again.
   */
  next(): Promise<ThreadEvents | "recreated" | "ended" | "lost">;
  /** Continues after the `"lost"` run, which is gone. */
  skip(): void;
  close(): void;
}

interface ThreadReaderOptions {
  threadId: string;
  after: number;
  turns: Turns;
  readRun(run: BegunRun, after: number): RunReader;
  held(): string[];
  follow(wake: (begun?: BegunRun, gone?: GoneRun) => void): () => void;
  isStopped: () => boolean;
  logger: Logger;
}

/**
 * All readers of a process poll at the same moments, to share one statement. A thousand idle
 * streams made 2,000 statements a second.
 */
const POLL_MS = 500;
/** Remembered to ignore a repeated signal, which follows within milliseconds. */
const GONE_REMEMBERED = 1_000;

const createGoneRuns = (threadId: string) => {
  const waiting: GoneRun[] = [];
  const known = new Set<string>();
  return {
    add(run: GoneRun): void {
      if (known.has(run.runId)) return;
      known.add(run.runId);
      const [oldest = ""] = known;
      if (known.size > GONE_REMEMBERED) known.delete(oldest);
      waiting.push(run);
      waiting.sort((one, other) => one.turn - other.turn);
    },
    takeBefore(next: BegunRun | undefined): ThreadEvents | undefined {
      const [first] = waiting;
      if (first === undefined || (next !== undefined && next.turn < first.turn)) return undefined;
      waiting.shift();
      const run = { ...first, threadId, graphId: "", attempt: 0, resumable: true };
      return { runId: run.runId, run, events: [], isOver: true };
    },
  };
};

export const readThread = (options: ThreadReaderOptions): ThreadReader => {
  const { threadId, turns, readRun, held, isStopped, logger } = options;
  let { after } = options;
  let turn = turnOf(after);
  let current: { run: BegunRun; reader: RunReader } | undefined;
  let done = false;
  let seenHead: string | undefined;
  /** `createdAt` of the thread when last read; null: there was no thread. */
  let createdAt: string | null | undefined;
  const news = new News();
  /** The run that began here last; saves a query if its turn is next. */
  let begunHere: BegunRun | undefined;
  const gone = createGoneRuns(threadId);
  const unfollow = options.follow((begun, goneRun) => {
    begunHere = begun ?? begunHere;
    if (goneRun !== undefined) gone.add(goneRun);
    news.come();
  });

  /** True if the thread was recreated since the last read, or since the client got `after`. */
  const isRecreated = (head: ThreadHead | undefined): boolean => {
    const before = createdAt;
    createdAt = head?.createdAt ?? before ?? null;
    if (before === undefined)
      return head !== undefined && turnOf(after) > Math.max(head.over, head.running ?? 0);
    return createdAt !== before && (before !== null || after > 0);
  };

  const findRun = async (): Promise<BegunRun | "recreated" | undefined> => {
    if (begunHere?.turn === turn && turn > 0) return begunHere;
    const head = await turns.head(threadId);
    if (isRecreated(head)) {
      after = 0;
      turn = 0;
      begunHere = undefined;
      return "recreated";
    }
    const seen = JSON.stringify(head ?? null);
    if (seen === seenHead) return undefined;
    const found = head === undefined ? undefined : await turns.next(threadId, turn, held());
    if (found === undefined) {
      seenHead = seen;
      // All ended runs are read or unreadable, so the next attempt has the next turn.
      if (head?.running === null) turn = Math.max(turn, head.over + 1);
    }
    return found;
  };

  const endOfGone = (next: BegunRun | undefined): ThreadEvents | undefined => {
    const over = gone.takeBefore(next);
    if (over !== undefined) turn = Math.max(turn, over.run.turn + 1);
    return over;
  };

  const skip = (): void => {
    if (current === undefined) return;
    turn = Math.max(turn, current.run.turn, turnOf(after)) + 1;
    current.reader.close();
    current = undefined;
  };

  const readOn = async (from: { run: BegunRun; reader: RunReader }): Promise<ThreadEvents | "lost"> => {
    const { run, reader } = from;
    const news = await reader.next();
    if (news === "lost") return news;
    if (news === "ended") {
      skip();
      return { runId: run.runId, run, events: [], isOver: true };
    }
    const unseen = news.filter(({ threadSeq = 0 }) => threadSeq > after);
    after = unseen.at(-1)?.threadSeq ?? after;
    return { runId: run.runId, run, events: unseen, isOver: false };
  };

  return {
    async next() {
      for (;;) {
        if (done) return "ended";
        if (isStopped()) return "lost";
        if (current !== undefined) {
          const before = endOfGone(current.run);
          if (before !== undefined) return before;
          const news = await readOn(current);
          if (done) return "ended";
          if (news === "lost" || news.isOver || news.events.length > 0) return news;
          continue;
        }
        news.forget();
        const found = await patiently(
          findRun,
          () => !done && !isStopped(),
          (error) =>
            logger.error({ err: error, thread_id: threadId }, "the runs of a thread could not be read"),
        );
        if (done) return "ended";
        if (found === "lost") return found;
        if (found === "recreated") return found;
        const over = endOfGone(found);
        if (over !== undefined) return over;
        if (found === undefined) await news.wait(POLL_MS - (performance.now() % POLL_MS));
        else {
          const from = turnOf(after) < found.turn ? -1 : after - (threadOffset(found) ?? 0);
          current = { run: found, reader: readRun(found, from) };
        }
      }
    },
    skip,
    close() {
      done = true;
      unfollow();
      current?.reader.close();
      news.come();
    },
  };
};
