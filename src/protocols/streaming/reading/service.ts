import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Signals } from "../../../platform/database/signals.ts";
import type { Hub } from "../../../engine/events/hub.ts";
import type { StreamingRepository } from "../repository.ts";
import type { EventStream } from "../schemas.ts";
import { openReadAccess, type ReadAccess } from "../read-access.ts";
import { untilExists } from "./arrivals.ts";
import { createAudiences } from "./connections.ts";
import { createFilter } from "./filter.ts";
import type { SubscriptionReader } from "./merged-reader.ts";
import { beforeTurnBegan, createOpenings, type Opening } from "./opening.ts";
import { readSubscription } from "./reader.ts";

export const createReadingService = (
  authorize: Authorize,
  repository: StreamingRepository,
  hub: Hub,
  signals: Pick<Signals, "subscribeToThread">,
) => {
  const audiences = createAudiences();
  const openings = createOpenings(repository);
  const readers = new Set<SubscriptionReader>();

  const openingOf = async (threadId: string, since: number | string | undefined): Promise<Opening> => {
    if (typeof since === "number") return await openings.afterSeq(threadId, since);
    const named = since === undefined ? undefined : await openings.afterEvent(threadId, since);
    if (named !== undefined) return named;
    return await openings.fromBeginning(threadId);
  };

  return {
    /** The number of open subscriptions. */
    open: () => readers.size,

    openAccess: (caller: Caller, threadId: string): Promise<ReadAccess> =>
      openReadAccess(authorize, repository, caller, threadId),

    /**
     * Reads after `since` or the event `lastEventId`, else from the beginning; never ends by itself. The thread may not
     * exist yet; `onClose` may be called repeatedly.
     */
    async read(
      readAccess: ReadAccess,
      request: EventStream,
      {
        hasFlushed,
        lastEventId,
        userAgent,
        onClose,
      }: {
        hasFlushed: () => boolean;
        lastEventId?: string | undefined;
        userAgent?: string | undefined;
        onClose?: () => void;
      },
    ): Promise<SubscriptionReader> {
      const { threadId } = readAccess;
      const since = request.since ?? lastEventId;
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
        filter: createFilter(request, userAgent),
        hub,
        repository,
        audiences,
        hasFlushed,
        untilSeen: async (signal) => (isSeen ? undefined : await untilExists(readAccess, signals, signal)),
        open: async () => beforeTurnBegan(await openingOf(threadId, since), firstTurn),
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
