import type { SignalKind, Signals } from "../../platform/database/signals.ts";
import type { BegunRun } from "./turns.ts";
import type { Wire } from "./wires.ts";

/** Whoever follows a thread says so this often: to those who have not heard it, and to new processes. */
const FOLLOW_EVERY_MS = 5_000;
/** A process that has said nothing for so long follows no more: three signals were lost, or it is gone. */
const FOLLOWED_FOR_MS = 16_000;

/** Threads that other processes have said they follow. */
const createReceived = () => {
  /** Until when, by this process's own clock; those that were heard of last are the last. */
  const received = new Map<string, number>();
  return {
    note(threadId: string): void {
      const now = performance.now();
      received.delete(threadId);
      received.set(threadId, now + FOLLOWED_FOR_MS);
      for (const [oldest, until] of received) {
        if (until > now) break;
        received.delete(oldest);
      }
    },
    has: (threadId: string): boolean => (received.get(threadId) ?? 0) > performance.now(),
  };
};

/** A run that has no row, and the turn of its end. */
export interface GoneRun {
  runId: string;
  turn: number;
}

interface Follower {
  /** `begun`: a run that has begun in this process just now. `gone`: one that was rolled back before it began. */
  wake: (begun?: BegunRun, gone?: GoneRun) => void;
  wire: Wire;
}

/**
 * Threads whose events somebody reads, here or in another process. A run that begins on one of them keeps or logs its
 * events from the first one on, and makes those of the protocol wire if it is read over that; a run on any other thread pays
 * for nothing but a look into three maps.
 */
export const createFollowedThreads = (signals: Signals, processId: string) => {
  const here = new Map<string, Set<Follower>>();
  const elsewhere = createReceived();
  const elsewhereOverProtocol = createReceived();

  const isHereOverProtocol = (threadId: string): boolean => {
    for (const { wire } of here.get(threadId) ?? []) if (wire === "protocol") return true;
    return false;
  };
  const publish = (threadId: string): void => {
    signals.send({ kind: "follow", threadId, runId: processId });
    if (isHereOverProtocol(threadId)) signals.send({ kind: "follow-protocol", threadId, runId: processId });
  };
  const timer = setInterval(() => {
    for (const threadId of here.keys()) publish(threadId);
  }, FOLLOW_EVERY_MS);
  timer.unref();

  const wake = (threadId: string, begun?: BegunRun): void => {
    for (const follower of here.get(threadId) ?? []) follower.wake(begun);
  };

  return {
    /** Calls back whenever something is told of the thread. Returns the end of that. */
    follow(threadId: string, wire: Wire, waker: Follower["wake"]): () => void {
      const follower: Follower = { wake: waker, wire };
      const followers = here.get(threadId) ?? new Set();
      here.set(threadId, followers.add(follower));
      const unsubscribe = signals.subscribeToThread(threadId, ({ kind, runId, turn }) => {
        const gone = wire === "protocol" && turn !== undefined ? { runId, turn } : undefined;
        if (kind !== "follow" && kind !== "follow-protocol") waker(undefined, gone);
      });
      publish(threadId);
      return () => {
        unsubscribe();
        if (followers.delete(follower) && followers.size === 0) here.delete(threadId);
      };
    },

    /** Another process, or this one, has said that it follows the thread. */
    received(kind: SignalKind, threadId: string, by: string): void {
      if (by === processId) return;
      if (kind === "follow") elsewhere.note(threadId);
      if (kind === "follow-protocol") elsewhereOverProtocol.note(threadId);
    },

    isFollowedHere: (threadId: string): boolean => here.has(threadId),
    isFollowedElsewhere: (threadId: string): boolean => elsewhere.has(threadId),
    /** By anybody, over the protocol wire. */
    isFollowedOverProtocol: (threadId: string): boolean =>
      isHereOverProtocol(threadId) || elsewhereOverProtocol.has(threadId),
    wake,

    close(): void {
      clearInterval(timer);
      for (const threadId of here.keys()) wake(threadId);
    },
  };
};
