import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { threadNotFound } from "../../platform/domain/errors.ts";
import type { StreamingRepository } from "./repository.ts";

/** Depends on the caller and the thread's current metadata. */
export interface ReadAccess {
  readonly threadId: string;
  readonly caller: Caller;
  readonly hidesNothing: boolean;
  exists(): Promise<boolean>;
  /** For a thread that was visible: false if it is deleted. Rejects if it is hidden now. */
  stillExists(): Promise<boolean>;
  /** Rejects if the caller may read no threads, or a thread that was visible is hidden now. */
  reauthorize(caller: Caller): Promise<void>;
}

/** Rejects with `forbidden` if the caller may read no threads. */
export const openReadAccess = async (
  authorize: Authorize,
  repository: Pick<StreamingRepository, "exists" | "isHidden">,
  caller: Caller,
  threadId: string,
): Promise<ReadAccess> => {
  const mayRead = async (caller: Caller) =>
    await authorize(caller, "threads", "read", { thread_id: threadId });
  let seen = { caller, visibility: await mayRead(caller) };
  /** Readers wait for a missing thread, and a deleted thread may be recreated. */
  let existed = seen.visibility.hidesNothing;
  const readAccess: ReadAccess = {
    threadId,
    get caller() {
      return seen.caller;
    },
    get hidesNothing() {
      return seen.visibility.hidesNothing;
    },
    async exists() {
      const exists = await repository.exists(seen.visibility, threadId);
      existed ||= exists;
      return exists;
    },
    async stillExists() {
      if (readAccess.hidesNothing || (await readAccess.exists())) return true;
      await readAccess.reauthorize(readAccess.caller);
      return false;
    },
    async reauthorize(caller) {
      const visibility = await mayRead(caller);
      const isHidden = await repository.isHidden(visibility, threadId);
      seen = { caller, visibility };
      if (existed && isHidden) throw threadNotFound(threadId);
    },
  };
  return readAccess;
};
