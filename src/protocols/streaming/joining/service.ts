import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import { threadNotFound } from "../../../platform/domain/errors.ts";
import { beforeTurn } from "../../../engine/events/event-ids.ts";
import type { Hub } from "../../../engine/events/hub.ts";
import type { EventReader } from "../../../engine/events/transports/event-sink.ts";
import type { Turns } from "../../../engine/events/turns.ts";
import type { ThreadService } from "../../../api/threads/service.ts";
import type { StreamingRepository } from "../repository.ts";
import { openReadAccess, type ReadAccess } from "../read-access.ts";
import { readThreadStream } from "./reader.ts";
import type { ThreadStreamMode } from "./schemas.ts";

export interface ThreadStreamServiceParts {
  authorize: Authorize;
  repository: StreamingRepository;
  turns: Pick<Turns, "head">;
  hub: Pick<Hub, "followThread" | "readThread">;
  states: Pick<ThreadService["states"], "read">;
}

interface StateText {
  metadata?: { source?: string } | null;
}

/** A state of more than 1 MiB: each connection of a thread would hold one, all at the same moment. */
class LargeStateError extends Error {}

const whenLarge = async (): Promise<never> => {
  throw new LargeStateError();
};

/** The stream of a thread over its runs, as the first wire tells them. */
export const createThreadStreamService = (parts: ThreadStreamServiceParts) => {
  const { authorize, repository, turns, hub, states } = parts;

  /** Finds states that were written by hand; of several since the last look the newest. */
  const createStateWatch = async (readAccess: ReadAccess) => {
    const { threadId } = readAccess;
    let seen = await repository.stateChangedAt(threadId);
    return async (): Promise<string | undefined> => {
      const changedAt = await repository.stateChangedAt(threadId);
      if (changedAt === undefined || changedAt === seen) return undefined;
      const text = await states.read(readAccess.caller, threadId, {}, whenLarge).catch((error: unknown) => {
        if (error instanceof LargeStateError) return undefined;
        throw error;
      });
      seen = changedAt;
      // Who has written it is told in the state alone; a client reads it, if it needs to know.
      if (text === undefined) return `{"state":null,"thread_id":${JSON.stringify(threadId)}}`;
      const { metadata } = JSON.parse(text) as StateText;
      if (metadata?.source !== "update") return undefined;
      return `{"state":${text},"thread_id":${JSON.stringify(threadId)}}`;
    };
  };

  return {
    /**
     * Reads a thread after the event with the id `after`, in the order of its runs, those to come included; without an id from
     * now on. `from`: the id to come back with before there was an event. Throws `threadNotFound`.
     *
     * `run_modes`: all that the runs tell, and at the end of each `metadata {status: "run_done", run_id}`. `lifecycle`: of that
     * only `metadata`, which begins each attempt with `{run_id, attempt}`. `state_update`: `state_update {state, thread_id}`
     * where a state was written by hand; `state` is null of one of more than 1 MiB, also if a run has written it.
     */
    async read(
      caller: Caller,
      threadId: string,
      modes: ReadonlySet<ThreadStreamMode>,
      after: number | undefined,
    ): Promise<{ reader: EventReader; from: number; readAccess: ReadAccess }> {
      const readAccess = await openReadAccess({ authorize, repository }, caller, threadId);
      if (!(await readAccess.exists())) throw threadNotFound(threadId);
      // A run may begin while the database is asked.
      const unfollow = hub.followThread(threadId, "first");
      try {
        const head = await turns.head(threadId);
        if (head === undefined) throw threadNotFound(threadId);
        const { over, running } = head;
        const newState = modes.has("state_update") ? await createStateWatch(readAccess) : undefined;
        const from = after ?? beforeTurn(running ?? over + 1);
        const isLive = after === undefined && running !== null;
        const runs = hub.readThread(threadId, from, "first", { liveTurn: isLive ? running : undefined });
        const isStillSeen = (): Promise<boolean> => readAccess.stillExists();
        return {
          from,
          readAccess,
          reader: readThreadStream({ runs, modes, after: from, newState, isStillSeen }),
        };
      } finally {
        unfollow();
      }
    },
  };
};

export type ThreadStreamService = ReturnType<typeof createThreadStreamService>;
