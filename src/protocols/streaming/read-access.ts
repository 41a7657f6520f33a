import type { Once } from "../../access/reauthorization/groups.ts";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { threadNotFound } from "../../platform/domain/errors.ts";
import type { StreamingRepository } from "./repository.ts";

/** What a connection sees of a thread, as its caller and the thread's metadata are now. */
export interface Sight {
  readonly threadId: string;
  readonly caller: Caller;
  readonly hidesNothing: boolean;
  /**
   * Whether the thread is there for the caller. One that is hidden is one that does not exist. `once`: others who see the same
   * of it ask at this moment.
   */
  isThere(once?: Once): Promise<boolean>;
  /**
   * As `isThere`, asked before more of a thread is told that was there: false if it is gone. Rejects if it is hidden from the
   * caller by now, who is to be told that.
   */
  isStillThere(): Promise<boolean>;
  /** Rejects if the caller may read no threads any more, or this one was there for him and is hidden by now. */
  askAgain(caller: Caller, once: Once): Promise<void>;
}

export interface SightParts {
  authorize: Authorize;
  repository: Pick<StreamingRepository, "isThere" | "isHidden">;
}

/** Rejects with `forbidden` if the caller may read no threads at all. */
export const openSight = async (
  { authorize, repository }: SightParts,
  caller: Caller,
  threadId: string,
): Promise<Sight> => {
  const mayRead = async (asking: Caller) =>
    await authorize(asking, "threads", "read", { thread_id: threadId });
  let seen = { caller, visibility: await mayRead(caller) };
  /** A thread that was never seen is waited for, and one that is gone may be made anew. */
  let wasThere = seen.visibility.hidesNothing;
  const sight: Sight = {
    threadId,
    get caller() {
      return seen.caller;
    },
    get hidesNothing() {
      return seen.visibility.hidesNothing;
    },
    async isThere(once = (_subject, ask) => ask()) {
      const { visibility } = seen;
      const subject = JSON.stringify([threadId, visibility.pieces("metadata")]);
      const isThere = await once(subject, () => repository.isThere(visibility, threadId));
      wasThere ||= isThere;
      return isThere;
    },
    async isStillThere() {
      if (sight.hidesNothing || (await sight.isThere())) return true;
      await sight.askAgain(sight.caller, (_subject, ask) => ask());
      return false;
    },
    async askAgain(asking, once) {
      const asked = await once(`thread ${threadId}`, async () => {
        const visibility = await mayRead(asking);
        return { visibility, isHidden: await repository.isHidden(visibility, threadId) };
      });
      seen = { caller: asking, visibility: asked.visibility };
      if (wasThere && asked.isHidden) throw threadNotFound(threadId);
    },
  };
  return sight;
};
