import { retryPassing } from "../../../platform/database/passing-faults.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import { threadOffset, turnOf } from "../event-ids.ts";
import type { GoneRun } from "../followed-threads.ts";
import type { RunEvent } from "../log.ts";
import type { BegunRun, ThreadHead, Turns } from "../turns.ts";
import type { RunReader } from "./channel-reader.ts";

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
 * All readers of a process poll at the same moments, to share one statement (turns.ts). A thousand idle
 * streams made 2,000 statements a second.
 */
const POLL_MS = 500;
const PATIENCE_SECONDS = 60;

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
  let wake: (() => void) | undefined;
  let isWoken = false;
  /** The run that began here last; saves a query if its turn is next. */
  let begunHere: BegunRun | undefined;
  const gone = createGoneRuns(threadId);
  const unfollow = options.follow((begun, goneRun) => {
    begunHere = begun ?? begunHere;
    if (goneRun !== undefined) gone.add(goneRun);
    isWoken = true;
    wake?.();
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

  const waitForNews = async (): Promise<void> => {
    if (isWoken || done) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, POLL_MS - (performance.now() % POLL_MS));
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    wake = undefined;
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
        isWoken = false;
        let found: BegunRun | "recreated" | undefined;
        try {
          const isWanted = (): boolean => !done && !isStopped();
          found = await retryPassing(findRun, { forMs: PATIENCE_SECONDS * 1_000, isWanted });
        } catch (error) {
          if (done) return "ended";
          if (!isStopped())
            logger.error({ err: error, thread_id: threadId }, "the runs of a thread could not be read");
          return "lost";
        }
        if (done) return "ended";
        if (found === "recreated") return found;
        const over = endOfGone(found);
        if (over !== undefined) return over;
        if (found === undefined) await waitForNews();
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
      wake?.();
    },
  };
};
