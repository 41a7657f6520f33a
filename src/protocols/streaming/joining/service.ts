import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import { threadNotFound } from "../../../platform/domain/errors.ts";
import { beforeTurn } from "../../../engine/events/event-ids.ts";
import type { Hub } from "../../../engine/events/hub.ts";
import type { EventReader } from "../../../engine/events/transports/event-sink.ts";
import type { Turns } from "../../../engine/events/turns.ts";
import type { ReadBudget } from "../../../platform/lib/large-answers.ts";
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

/** All connections of a thread would hold such a state at the same moment. */
class LargeStateError extends Error {}

const budget: ReadBudget = {
  async reserve() {
    throw new LargeStateError();
  },
};

export const createThreadStreamService = (parts: ThreadStreamServiceParts) => {
  const { authorize, repository, turns, hub, states } = parts;

  /** Finds only the newest of several updates since the last poll. */
  const createStateWatch = async (readAccess: ReadAccess) => {
    const { threadId } = readAccess;
    let seen = await repository.stateChangedAt(threadId);
    return async (): Promise<string | undefined> => {
      const changedAt = await repository.stateChangedAt(threadId);
      if (changedAt === undefined || changedAt === seen) return undefined;
      const text = await states.read(readAccess.caller, threadId, { budget }).catch((error: unknown) => {
        if (error instanceof LargeStateError) return undefined;
        throw error;
      });
      seen = changedAt;
      // A large state is not read, so its writer is unknown. A client that needs the state reads it.
      if (text === undefined) return `{"state":null,"thread_id":${JSON.stringify(threadId)}}`;
      const { metadata } = JSON.parse(text) as StateText;
      if (metadata?.source !== "update") return undefined;
      return `{"state":${text},"thread_id":${JSON.stringify(threadId)}}`;
    };
  };

  return {
    /**
     * Reads after the event `after`, else from now on; throws `threadNotFound`. `from`: the id to reconnect with before
     * the first event.
     *
     * - `run_modes`: all events, and `metadata {status: "run_done", run_id}` at each run's end.
     * - `lifecycle`: only `metadata`, which begins each attempt with `{run_id, attempt}`.
     * - `state_update`: `{state, thread_id}` after an update. Above 1 MiB, `state` is null and a run may have written
     * it.
     */
    async read(
      caller: Caller,
      threadId: string,
      modes: ReadonlySet<ThreadStreamMode>,
      after: number | undefined,
    ): Promise<{ reader: EventReader; from: number; readAccess: ReadAccess }> {
      const readAccess = await openReadAccess(authorize, repository, caller, threadId);
      if (!(await readAccess.exists())) throw threadNotFound(threadId);
      // A run may begin during the query.
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
