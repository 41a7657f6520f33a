import type { Signals } from "../../../platform/database/signals.ts";
import { createBackOff } from "../../../platform/lib/back-off.ts";
import { openReadAccess, type ReadAccess, type StreamingRepository } from "../repository.ts";
import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Hub } from "../../../engine/events/hub.ts";
import type { EventStream } from "../schemas.ts";
import { beforeTurnBegan, createAudiences, openingOf } from "./connections.ts";
import { createFilter } from "./frames.ts";
import type { SubscriptionReader } from "./merged-reader.ts";
import { readSubscription } from "./reader.ts";

/** For lost signals: often for a client that is creating its thread, rarely for a page that stays open. */
const POLLS = { firstMs: 500, longestMs: 5_000 };
/** Short for a new thread, longer for another user's thread with a hundred signals a second. */
const AFTER_SIGNALS = { firstMs: 10, longestMs: 5_000 };

/** Waits for a missing or hidden thread, of which the reader learns nothing. Rejects if the database is away. */
export const untilExists = async (
  readAccess: ReadAccess,
  signals: Pick<Signals, "subscribeToThread">,
  signal: AbortSignal,
): Promise<void> => {
  const polls = createBackOff(POLLS);
  const afterSignals = createBackOff(AFTER_SIGNALS);
  let isSignalled = false;
  let wake = (): void => undefined;
  const pause = async (milliseconds: number): Promise<void> => {
    if (signal.aborted) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      wake = resolve;
      timer = setTimeout(resolve, milliseconds);
    });
    clearTimeout(timer);
  };
  const onAbort = (): void => wake();
  signal.addEventListener("abort", onAbort);
  const unsubscribe = signals.subscribeToThread(readAccess.threadId, ({ kind }) => {
    // Readers repeat these signals every few seconds.
    if (isSignalled || kind === "follow" || kind === "follow-protocol") return;
    isSignalled = true;
    wake();
  });
  try {
    while (!signal.aborted && !readAccess.hidesNothing && !(await readAccess.exists())) {
      if (!isSignalled) await pause(polls.next());
      if (!isSignalled) continue;
      await pause(afterSignals.next());
      isSignalled = false;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    unsubscribe();
  }
};

export const createReadingService = (
  authorize: Authorize,
  repository: StreamingRepository,
  hub: Hub,
  signals: Pick<Signals, "subscribeToThread">,
) => {
  const audiences = createAudiences();
  const readers = new Set<SubscriptionReader>();

  return {
    /** The number of open subscriptions. */
    open: () => readers.size,

    openAccess: (caller: Caller, threadId: string): Promise<ReadAccess> =>
      openReadAccess(authorize, repository, caller, threadId),

    /**
     * Reads after `since`, else from the beginning; never ends by itself. The thread may not exist yet; `onClose` may be
     * called repeatedly.
     */
    async read(
      readAccess: ReadAccess,
      request: EventStream,
      {
        hasFlushed,
        userAgent,
        onClose,
      }: {
        hasFlushed: () => boolean;
        userAgent?: string | undefined;
        onClose?: () => void;
      },
    ): Promise<SubscriptionReader> {
      const { threadId } = readAccess;
      // After a failure `untilSeen` asks again.
      const isSeen = readAccess.hidesNothing || (await readAccess.exists().catch(() => false));
      /** The first run that began here since. */
      let firstTurn = Infinity;
      // Before the answer, because the client may then start a run.
      const unfollow = isSeen
        ? hub.followThread(threadId, "protocol", ({ turn }) => (firstTurn = Math.min(firstTurn, turn)))
        : () => undefined;
      const reader = readSubscription({
        threadId,
        caller: readAccess.caller,
        filter: createFilter(request, userAgent),
        hub,
        repository,
        audiences,
        hasFlushed,
        untilSeen: async (signal) => (isSeen ? undefined : await untilExists(readAccess, signals, signal)),
        open: async () => beforeTurnBegan(await openingOf(repository, threadId, request.since), firstTurn),
        isStillSeen: () => readAccess.stillExists(),
        onClose() {
          unfollow();
          readers.delete(reader);
          onClose?.();
        },
      });
      readers.add(reader);
      return reader;
    },
  };
};
