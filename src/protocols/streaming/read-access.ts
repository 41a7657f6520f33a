import type { Once } from "../../access/reauthorization/groups.ts";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { threadNotFound } from "../../platform/domain/errors.ts";
import type { StreamingRepository } from "./repository.ts";

/** What a connection sees of a thread, as its caller and the thread's metadata are now. */
export interface ReadAccess {
  readonly threadId: string;
  readonly caller: Caller;
  readonly hidesNothing: boolean;
  /**
   * Whether the thread is there for the caller. One that is hidden is one that does not exist. `once`: others who see the same
   * of it ask at this moment.
   */
  exists(once?: Once): Promise<boolean>;
  /**
   * As `exists`, asked before more of a thread is told that was there: false if it is gone. Rejects if it is hidden from the
   * caller by now, who is to be told that.
   */
  stillExists(): Promise<boolean>;
  /** Rejects if the caller may read no threads any more, or this one was there for him and is hidden by now. */
  reauthorize(caller: Caller, once: Once): Promise<void>;
}

export interface ReadAccessParts {
  authorize: Authorize;
  repository: Pick<StreamingRepository, "exists" | "isHidden">;
}

/** Rejects with `forbidden` if the caller may read no threads at all. */
export const openReadAccess = async (
  { authorize, repository }: ReadAccessParts,
  caller: Caller,
  threadId: string,
): Promise<ReadAccess> => {
  const mayRead = async (caller: Caller) =>
    await authorize(caller, "threads", "read", { thread_id: threadId });
  let seen = { caller, visibility: await mayRead(caller) };
  /** A thread that was never seen is waited for, and one that is gone may be made anew. */
  let existed = seen.visibility.hidesNothing;
  const readAccess: ReadAccess = {
    threadId,
    get caller() {
      return seen.caller;
    },
    get hidesNothing() {
      return seen.visibility.hidesNothing;
    },
    async exists(once = (_subject, ask) => ask()) {
      const { visibility } = seen;
      const subject = JSON.stringify([threadId, visibility.pieces("metadata")]);
      const exists = await once(subject, () => repository.exists(visibility, threadId));
      existed ||= exists;
      return exists;
    },
    async stillExists() {
      if (readAccess.hidesNothing || (await readAccess.exists())) return true;
      await readAccess.reauthorize(readAccess.caller, (_subject, ask) => ask());
      return false;
    },
    async reauthorize(caller, once) {
      const asked = await once(`thread ${threadId}`, async () => {
        const visibility = await mayRead(caller);
        return { visibility, isHidden: await repository.isHidden(visibility, threadId) };
      });
      seen = { caller: caller, visibility: asked.visibility };
      if (existed && asked.isHidden) throw threadNotFound(threadId);
    },
  };
  return readAccess;
};
