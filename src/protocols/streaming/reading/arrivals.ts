import type { Once } from "../../../access/reauthorization/groups.ts";
import type { Signals } from "../../../platform/database/signals.ts";
import { createBackOff, type BackOff } from "../../../platform/lib/back-off.ts";
import type { ReadAccess } from "../read-access.ts";

/**
 * A thread that is waited for is looked for by itself, should a signal have been lost: soon while its client is about to make it,
 * and seldom once a page is left open on it.
 */
const POLLS = { firstMs: 500, longestMs: 5_000 };
/**
 * How long after a signal. The first one comes from a thread that has just begun to tell; where looking was in vain, the thread is
 * somebody else's, and may tell a hundred things a second.
 */
const AFTER_SIGNALS = { firstMs: 10, longestMs: 5_000 };

interface Waiting {
  readAccess: ReadAccess;
  /** The thread is there, or nobody waits any more. */
  end(): void;
  fail(error: unknown): void;
}

/** Those who wait for one thread. */
interface Room {
  waiting: Set<Waiting>;
  polls: BackOff;
  afterSignals: BackOff;
  /** A signal has come since the last look, after which the next one is this many milliseconds later. */
  signalled: number | undefined;
  isPolling: boolean;
  timer: NodeJS.Timeout | undefined;
  /** When the timer is due, by `performance.now()`. */
  dueAt: number;
  unsubscribe(): void;
}

/** Asks once for all who want to know the same. */
const onceAmongReaders = (): Once => {
  const answers = new Map<string, Promise<unknown>>();
  return (subject, ask) => {
    const answer = answers.get(subject) ?? ask();
    answers.set(subject, answer);
    return answer as ReturnType<typeof ask>;
  };
};

const pollFor = async ({ readAccess, end, fail }: Waiting, once?: Once): Promise<void> => {
  try {
    if (readAccess.hidesNothing || (await readAccess.exists(once))) end();
  } catch (error) {
    fail(error);
  }
};

const poll = async (room: Room): Promise<void> => {
  room.isPolling = true;
  room.signalled = undefined;
  const once = onceAmongReaders();
  await Promise.all([...room.waiting].map((waiting) => pollFor(waiting, once)));
  room.isPolling = false;
  room.dueAt = Infinity;
  if (room.waiting.size > 0) pollWithin(room, room.signalled ?? room.polls.next());
};

const pollWithin = (room: Room, milliseconds: number): void => {
  const dueAt = performance.now() + milliseconds;
  if (room.isPolling || room.dueAt <= dueAt) return;
  clearTimeout(room.timer);
  room.dueAt = dueAt;
  room.timer = setTimeout(() => void poll(room), milliseconds);
};

/**
 * Waits for threads that are not there for who reads them: not made yet, or somebody else's. All who wait for one share its looks: a
 * statement for each filter among them, since that is what says what they see.
 */
export const createArrivals = (signals: Pick<Signals, "subscribeToThread">) => {
  const rooms = new Map<string, Room>();

  const roomOf = (threadId: string): Room => {
    const found = rooms.get(threadId);
    if (found !== undefined) return found;
    const room: Room = {
      waiting: new Set(),
      polls: createBackOff(POLLS),
      afterSignals: createBackOff(AFTER_SIGNALS),
      signalled: undefined,
      isPolling: false,
      timer: undefined,
      dueAt: Infinity,
      unsubscribe: signals.subscribeToThread(threadId, ({ kind }) => {
        // Who reads it says so every few seconds, and that is no news of it.
        if (kind === "follow" || kind === "follow-protocol") return;
        room.signalled ??= room.afterSignals.next();
        pollWithin(room, room.signalled);
      }),
    };
    rooms.set(threadId, room);
    pollWithin(room, room.polls.next());
    return room;
  };

  const leave = (threadId: string, room: Room, waiting: Waiting): void => {
    if (!room.waiting.delete(waiting) || room.waiting.size > 0) return;
    clearTimeout(room.timer);
    room.unsubscribe();
    rooms.delete(threadId);
  };

  return {
    /**
     * A thread that the caller may not see is one that does not exist: he waits, and learns nothing. Resolves when it is there for
     * him, or the signal aborts; rejects where the database can't be asked.
     */
    async untilExists(readAccess: ReadAccess, signal: AbortSignal): Promise<void> {
      if (readAccess.hidesNothing || signal.aborted) return;
      const { threadId } = readAccess;
      const room = roomOf(threadId);
      await new Promise<void>((resolve, reject) => {
        const waiting: Waiting = {
          readAccess,
          end() {
            leave(threadId, room, waiting);
            signal.removeEventListener("abort", waiting.end);
            resolve();
          },
          fail(error) {
            reject(error as Error);
            waiting.end();
          },
        };
        room.waiting.add(waiting);
        signal.addEventListener("abort", waiting.end);
        // At once, whatever the others wait for: nearly always it is there.
        void pollFor(waiting);
      });
    },
  };
};
