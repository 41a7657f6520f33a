import type { Signals } from "../database/signals.ts";

/** Whoever follows a thread says so this often: to those who have not heard it, and to new processes. */
const FOLLOW_EVERY_MS = 5_000;
/** A process that has said nothing for so long follows no more: three signals were lost, or it is gone. */
const FOLLOWED_FOR_MS = 16_000;

/**
 * Threads whose events somebody reads, here or in another process. A run that begins on one of them keeps or logs its
 * events from the first one on; a run on any other thread pays for nothing but a look into two maps.
 */
export const createFollowedThreads = (signals: Signals, processId: string) => {
  const here = new Map<string, Set<() => void>>();
  /** Until when, by this process's own clock; those that were heard of last are the last. */
  const elsewhere = new Map<string, number>();

  const say = (threadId: string): void => signals.send({ kind: "follow", threadId, runId: processId });
  const timer = setInterval(() => {
    for (const threadId of here.keys()) say(threadId);
  }, FOLLOW_EVERY_MS);
  timer.unref();

  const wake = (threadId: string): void => {
    for (const waker of here.get(threadId) ?? []) waker();
  };

  return {
    /** Calls back whenever something is told of the thread. Returns the end of that. */
    follow(threadId: string, waker: () => void): () => void {
      const wakers = here.get(threadId) ?? new Set();
      here.set(threadId, wakers.add(waker));
      const unsubscribe = signals.subscribeToThread(threadId, ({ kind }) => {
        if (kind !== "follow") waker();
      });
      say(threadId);
      return () => {
        unsubscribe();
        if (wakers.delete(waker) && wakers.size === 0) here.delete(threadId);
      };
    },

    /** Another process, or this one, has said that it follows the thread. */
    heard(threadId: string, by: string): void {
      if (by === processId) return;
      const now = performance.now();
      elsewhere.delete(threadId);
      elsewhere.set(threadId, now + FOLLOWED_FOR_MS);
      for (const [oldest, until] of elsewhere) {
        if (until > now) break;
        elsewhere.delete(oldest);
      }
    },

    isFollowedHere: (threadId: string): boolean => here.has(threadId),
    isFollowedElsewhere: (threadId: string): boolean => (elsewhere.get(threadId) ?? 0) > performance.now(),
    wake,

    close(): void {
      clearInterval(timer);
      for (const threadId of here.keys()) wake(threadId);
    },
  };
};
