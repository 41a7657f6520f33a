import { retryPassing } from "../../../platform/database/passing-faults.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import { threadOffset, turnOf } from "../event-ids.ts";
import type { GoneRun } from "../followed-threads.ts";
import type { RunEvent } from "../log.ts";
import type { BegunRun, ThreadHead, Turns } from "../turns.ts";
import type { RunReader } from "./channel-reader.ts";

/** What is told of one run of a thread; each event has a `threadSeq`. */
export interface ThreadEvents {
  runId: string;
  run: BegunRun;
  events: RunEvent[];
  /** The run has ended, and the reader has seen all of it: there are no events, and its row is as it stays. */
  isOver: boolean;
}

/** A reader's view of one thread, over its runs. */
export interface ThreadReader {
  /**
   * The next events, at least one, or that their run is over; waits while nothing is executed, for as long as it takes.
   * `"lost"` as of a RunReader: the connection is to be dropped, and the client comes back with the last `threadSeq` that it has. `"ended"` only once the
   * reader was closed. `"anew"`: the thread was deleted and made again under its id, whose ids begin anew; the reader goes on
   * with its first run.
   */
  next(): Promise<ThreadEvents | "anew" | "ended" | "lost">;
  /** Goes on behind the run that is `"lost"`, which is gone. */
  skip(): void;
  close(): void;
}

export interface ThreadReaderOptions {
  threadId: string;
  /** `threadSeq` of the last event that the reader has; 0 for all that is kept. */
  after: number;
  turns: Turns;
  /** Reads one run, from the event after the one that has the id `after` in that run. */
  readRun(run: BegunRun, after: number): RunReader;
  /** Runs of the thread that are in memory here, also for a while after their end. */
  held(): string[];
  /**
   * Calls back when there may be something new, with a run that has just begun here, or one that was rolled back before it began;
   * returns the end of that.
   */
  follow(wake: (begun?: BegunRun, gone?: GoneRun) => void): () => void;
  isStopped: () => boolean;
  logger: Logger;
}

/**
 * A reader looks by itself this often, should a signal have been lost. All of a process do at the same moments, so that their
 * looks are one statement (turns.ts): a thousand idle streams were 2,000 statements a second.
 */
const POLL_MS = 500;
/** As of a reader of one run. */
const PATIENCE_SECONDS = 60;

/** Runs that are gone, to know a signal that comes for the second time, which it does within milliseconds. */
const GONE_REMEMBERED = 1_000;

/** Runs that were rolled back before they began: their ends are to be told, each in its turn. */
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
    /** The end of the first, if its turn is before that of the next run. */
    takeBefore(next: BegunRun | undefined): ThreadEvents | undefined {
      const [first] = waiting;
      if (first === undefined || (next !== undefined && next.turn < first.turn)) return undefined;
      waiting.shift();
      const run = { ...first, threadId, graphId: "", attempt: 0, resumable: true };
      return { runId: run.runId, run, events: [], isOver: true };
    },
  };
};

/** Reads the runs of a thread one after the other, in the order in which their attempts began. */
export const readThread = (options: ThreadReaderOptions): ThreadReader => {
  const { threadId, turns, readRun, held, isStopped, logger } = options;
  let { after } = options;
  /** The first turn that has not been read to its end. */
  let turn = turnOf(after);
  let current: { run: BegunRun; reader: RunReader } | undefined;
  let done = false;
  /** What the thread's head was when nothing more was found. */
  let seenHead: string | undefined;
  /** When the thread was made that was seen last; null: none was there. */
  let createdAt: string | null | undefined;
  let wake: (() => void) | undefined;
  let isWoken = false;
  /** The run that began here last: where its turn is the next one to be read, the database need not be asked for it. */
  let begunHere: BegunRun | undefined;
  const gone = createGoneRuns(threadId);
  const unfollow = options.follow((begun, goneRun) => {
    begunHere = begun ?? begunHere;
    if (goneRun !== undefined) gone.add(goneRun);
    isWoken = true;
    wake?.();
  });

  /** True if the thread is another one than was read, or than whoever has `after` has read, under the same id. */
  const isRecreated = (head: ThreadHead | undefined): boolean => {
    const before = createdAt;
    createdAt = head?.createdAt ?? before ?? null;
    // Nobody has an event of a turn that has not begun.
    if (before === undefined)
      return head !== undefined && turnOf(after) > Math.max(head.over, head.running ?? 0);
    return createdAt !== before && (before !== null || after > 0);
  };

  const findRun = async (): Promise<BegunRun | "anew" | undefined> => {
    if (begunHere?.turn === turn && turn > 0) return begunHere;
    const head = await turns.head(threadId);
    if (isRecreated(head)) {
      after = 0;
      turn = 0;
      begunHere = undefined;
      return "anew";
    }
    const seen = JSON.stringify(head ?? null);
    if (seen === seenHead) return undefined;
    const found = head === undefined ? undefined : await turns.next(threadId, turn, held());
    if (found === undefined) {
      seenHead = seen;
      // What has ended is read, or can't be: the next attempt that begins has the next turn.
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

  /** The events of the current run that the reader has not seen. */
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
        let found: BegunRun | "anew" | undefined;
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
        if (found === "anew") return found;
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
