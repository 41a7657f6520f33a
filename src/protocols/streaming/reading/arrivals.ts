import { createOnce, type Once } from "../../../access/reauthorization/groups.ts";
import type { Signals } from "../../../platform/database/signals.ts";
import { createBackOff, type BackOff } from "../../../platform/lib/back-off.ts";
import type { ReadAccess } from "../read-access.ts";

/** For lost signals: often for a client that is creating its thread, rarely for a page that stays open. */
const POLLS = { firstMs: 500, longestMs: 5_000 };
/** Short for a new thread, longer for another user's thread with a hundred signals a second. */
const AFTER_SIGNALS = { firstMs: 10, longestMs: 5_000 };

interface Waiting {
  readAccess: ReadAccess;
  end(): void;
  fail(error: unknown): void;
}

interface Room {
  waiting: Set<Waiting>;
  polls: BackOff;
  afterSignals: BackOff;
  /** The delay of the next poll, if a signal came. */
  signalled: number | undefined;
  isPolling: boolean;
  timer: NodeJS.Timeout | undefined;
  /** The timer's time by `performance.now()`. */
  dueAt: number;
  unsubscribe(): void;
}

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
  const once = createOnce();
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

/** Waits for missing and hidden threads. Readers of one thread share polls, with one statement per visibility. */
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
        // Readers repeat these signals every few seconds.
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
    /** A reader of a hidden thread learns nothing. Rejects if the database is away. */
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
        // Nearly always the thread exists.
        void pollFor(waiting);
      });
    },
  };
};
