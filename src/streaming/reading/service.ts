import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { Signals } from "../../database/signals.ts";
import type { Hub } from "../../events/hub.ts";
import type { StreamingRepository } from "../repository.ts";
import type { EventStream } from "../schemas.ts";
import { createAudiences } from "./audiences.ts";
import { createFilter } from "./filter.ts";
import type { SubscriptionReader } from "./merged-reader.ts";
import { createOpenings, NOTHING_YET, type Opening } from "./opening.ts";
import { readSubscription } from "./reader.ts";

export interface ReadingServiceParts {
  authorize: Authorize;
  repository: StreamingRepository;
  hub: Hub;
  signals: Pick<Signals, "subscribeToThread">;
}

/** Who waits for a thread that does not exist yet looks by himself this often, should a signal have been lost. */
const POLL_MS = 500;

/** Reading threads over event streaming, whichever transport carries it. */
export const createReadingService = ({ authorize, repository, hub, signals }: ReadingServiceParts) => {
  const audiences = createAudiences();
  const openings = createOpenings({ repository, hub });
  const readers = new Set<SubscriptionReader>();

  /** Resolves when something is told of the thread, or after a while. */
  const news = async (threadId: string, signal: AbortSignal): Promise<void> =>
    await new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        unsubscribe();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, POLL_MS);
      const unsubscribe = signals.subscribeToThread(threadId, end);
      signal.addEventListener("abort", end);
    });

  /** A thread that the caller may not see is one that does not exist: he waits, and learns nothing. */
  const untilThere = async (
    visibility: Visibility<"threads">,
    threadId: string,
    signal: AbortSignal,
  ): Promise<void> => {
    if (visibility.hidesNothing) return;
    while (!signal.aborted && !(await repository.isThere(visibility, threadId))) await news(threadId, signal);
  };

  const openingOf = async (threadId: string, since: number | string | undefined): Promise<Opening> => {
    if (typeof since === "number") return openings.afterSeq(since);
    const named = since === undefined ? undefined : await openings.afterEvent(threadId, since);
    if (named !== undefined) return named;
    return await openings.fromBeginning(threadId);
  };

  return {
    /** How many connections read threads at the moment. */
    open: () => readers.size,

    /** Rejects with `forbidden` if the caller may read no threads at all. */
    async assertMayRead(caller: Caller, threadId: string): Promise<void> {
      await authorize(caller, "threads", "read", { thread_id: threadId });
    },

    /**
     * Reads a thread from `since` of the request on; without that from after the event that `lastEventId` names, or from the
     * beginning. The thread may not exist yet. Never ends by itself. `hasFlushed`: see Attendance.
     */
    async read(
      caller: Caller,
      threadId: string,
      request: EventStream,
      { hasFlushed, lastEventId }: { hasFlushed: () => boolean; lastEventId?: string | undefined },
    ): Promise<SubscriptionReader> {
      const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
      const since = request.since ?? lastEventId;
      // From this moment on, not from when the database has answered: a run may begin meanwhile.
      const unfollow = visibility.hidesNothing ? hub.followThread(threadId, "protocol") : () => undefined;
      const open = async (signal: AbortSignal): Promise<Opening> => {
        await untilThere(visibility, threadId, signal);
        if (signal.aborted) return NOTHING_YET;
        return await openingOf(threadId, since);
      };
      const reader = readSubscription({
        threadId,
        filter: createFilter(request),
        hub,
        repository,
        audiences,
        hasFlushed,
        open,
        isStillSeen: async () => visibility.hidesNothing || (await repository.isThere(visibility, threadId)),
        onClose() {
          unfollow();
          readers.delete(reader);
        },
      });
      readers.add(reader);
      return reader;
    },
  };
};

export type ReadingService = ReturnType<typeof createReadingService>;
