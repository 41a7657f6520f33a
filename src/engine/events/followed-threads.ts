import type { SignalKind, Signals } from "../../platform/database/signals.ts";
import type { BegunRun } from "./turns.ts";
import type { Wire } from "./wires.ts";

/** Repeated for processes that lost a signal or started since. */
const FOLLOW_EVERY_MS = 5_000;
/** Covers three lost signals. */
const FOLLOWED_FOR_MS = 16_000;

const createReceived = () => {
  /** Thread id -> expiry, by this process's clock. The latest signal is last. */
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

/** A run without a row, and the turn of its end. */
export interface GoneRun {
  runId: string;
  turn: number;
}

interface Follower {
  /** `begun`: the run began in this process just now. `gone`: the run was rolled back before it began. */
  wake: (begun?: BegunRun, gone?: GoneRun) => void;
  wire: Wire;
}

/**
 * Threads with readers in any process. Runs that begin on these threads keep or log their events; other runs
 * pay three map lookups.
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

    received(kind: SignalKind, threadId: string, by: string): void {
      if (by === processId) return;
      if (kind === "follow") elsewhere.note(threadId);
      if (kind === "follow-protocol") elsewhereOverProtocol.note(threadId);
    },

    isFollowedHere: (threadId: string): boolean => here.has(threadId),
    isFollowedElsewhere: (threadId: string): boolean => elsewhere.has(threadId),
    isFollowedOverProtocol: (threadId: string): boolean =>
      isHereOverProtocol(threadId) || elsewhereOverProtocol.has(threadId),
    wake,

    close(): void {
      clearInterval(timer);
      for (const threadId of here.keys()) wake(threadId);
    },
  };
};
