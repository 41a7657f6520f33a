import { retryPassing } from "../../database/passing-faults.ts";
import type { Logger } from "../../lib/logger.ts";
import { threadOffset, turnOf } from "../event-ids.ts";
import type { RunEvent } from "../log.ts";
import type { BegunRun, Turns } from "../turns.ts";
import type { RunReader } from "./channel-reader.ts";

/** Events of one run of a thread; each has a `threadSeq`. */
export interface ThreadEvents {
  runId: string;
  events: RunEvent[];
}

/** A reader's view of one thread, over its runs. */
export interface ThreadReader {
  /**
   * The next events, at least one; waits while nothing is executed, for as long as it takes. `"lost"` as of a RunReader: the
   * connection is to be dropped, and the client comes back with the last `threadSeq` that it has. `"ended"` only once the
   * reader was closed.
   */
  next(): Promise<ThreadEvents | "ended" | "lost">;
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
  /** Calls back when there may be something new; returns the end of that. */
  follow(wake: () => void): () => void;
  isStopped: () => boolean;
  logger: Logger;
}

/** A reader looks by itself this often, should a signal have been lost. */
const POLL_MS = 500;
/** As of a reader of one run. */
const PATIENCE_SECONDS = 60;

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
  let wake: (() => void) | undefined;
  let isWoken = false;
  const unfollow = options.follow(() => {
    isWoken = true;
    wake?.();
  });

  const findRun = async (): Promise<BegunRun | undefined> => {
    const head = JSON.stringify((await turns.head(threadId)) ?? null);
    if (head === seenHead) return undefined;
    const found = head === "null" ? undefined : await turns.next(threadId, turn, held());
    if (found === undefined) seenHead = head;
    return found;
  };

  const waitForNews = async (): Promise<void> => {
    if (isWoken || done) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, POLL_MS);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    wake = undefined;
  };

  /** The events of the current run that the reader has not seen; undefined at the run's end. */
  const readOn = async (from: {
    run: BegunRun;
    reader: RunReader;
  }): Promise<ThreadEvents | "lost" | undefined> => {
    const news = await from.reader.next();
    if (news === "lost") return news;
    if (news === "ended") {
      from.reader.close();
      turn = Math.max(turn, from.run.turn, turnOf(after)) + 1;
      current = undefined;
      return undefined;
    }
    const unseen = news.filter(({ threadSeq = 0 }) => threadSeq > after);
    after = unseen.at(-1)?.threadSeq ?? after;
    return { runId: from.run.runId, events: unseen };
  };

  return {
    async next() {
      for (;;) {
        if (done) return "ended";
        if (isStopped()) return "lost";
        if (current !== undefined) {
          const news = await readOn(current);
          if (done) return "ended";
          if (news === "lost" || (news !== undefined && news.events.length > 0)) return news;
          continue;
        }
        isWoken = false;
        let found: BegunRun | undefined;
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
        if (found === undefined) await waitForNews();
        else {
          const from = turnOf(after) < found.turn ? -1 : after - (threadOffset(found) ?? 0);
          current = { run: found, reader: readRun(found, from) };
        }
      }
    },
    close() {
      done = true;
      unfollow();
      current?.reader.close();
      wake?.();
    },
  };
};
