import { setTimeout as delay } from "node:timers/promises";
import { beforeTurn } from "../../engine/events/event-ids.ts";
import type { ThreadEvents, ThreadReader, Turns } from "../../engine/events/readers/thread-reader.ts";
import type { EventReader, SentEvent } from "../../engine/events/transports/event-sink.ts";
import type { ThreadStreamMode } from "./schemas.ts";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { LARGE_ANSWER_BYTES } from "../../http/large-answers.ts";
import { threadNotFound } from "../../platform/domain/errors.ts";
import type { Hub } from "../../engine/events/hub.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import { openReadAccess, type ReadAccess, type StreamingRepository } from "./repository.ts";

/** Updates of a state send no signal. */
const POLL_MS = 500;

/** Event ids rise over the runs of the thread. */
const sentOf = (
  { runId, run, events, isOver }: ThreadEvents,
  modes: ReadonlySet<ThreadStreamMode>,
  last: number,
): SentEvent[] => {
  if (!isOver)
    return events
      .filter(({ event }) => modes.has("run_modes") || (modes.has("lifecycle") && event === "metadata"))
      .map(({ threadSeq = 0, event, data }) => ({ seq: threadSeq, event, data }));
  // No event of the run has this id, and later runs have higher ones.
  const seq = beforeTurn(run.turn + 1);
  if (seq <= last || !(modes.has("run_modes") || modes.has("lifecycle"))) return [];
  return [{ seq, event: "metadata", data: JSON.stringify({ status: "run_done", run_id: runId }) }];
};

interface ThreadStreamServiceParts {
  authorize: Authorize;
  repository: StreamingRepository;
  turns: Pick<Turns, "head">;
  hub: Pick<Hub, "followThread" | "readThread">;
  states: Pick<ThreadService["states"], "read">;
}

interface StateText {
  metadata?: { source?: string } | null;
}

export const createThreadStreamService = (parts: ThreadStreamServiceParts) => {
  const { authorize, repository, turns, hub, states } = parts;

  /** Finds only the newest of several updates since the last poll. */
  const createStateWatch = async (readAccess: ReadAccess) => {
    const { threadId } = readAccess;
    let seen = await repository.stateChangedAt(threadId);
    return async (): Promise<string | undefined> => {
      const changedAt = await repository.stateChangedAt(threadId);
      if (changedAt === undefined || changedAt === seen) return undefined;
      const text = await states.read(readAccess.caller, threadId, {});
      seen = changedAt;
      // All connections of a thread would hold a large state at the same moment. A client that needs the state reads it.
      if (text.length > LARGE_ANSWER_BYTES) return `{"state":null,"thread_id":${JSON.stringify(threadId)}}`;
      const { metadata } = JSON.parse(text) as StateText;
      if (metadata?.source !== "update") return undefined;
      return `{"state":${text},"thread_id":${JSON.stringify(threadId)}}`;
    };
  };

  async function* read(
    runs: ThreadReader,
    modes: ReadonlySet<ThreadStreamMode>,
    from: number,
    readAccess: ReadAccess,
    newState: (() => Promise<string | undefined>) | undefined,
  ): AsyncGenerator<SentEvent[], "ended" | "lost"> {
    let last = from;
    let checkedTurn: number | undefined;
    let upcoming: ReturnType<ThreadReader["next"]> | undefined;
    let poll: Promise<undefined> | undefined;
    for (;;) {
      upcoming ??= runs.next();
      poll ??= newState && delay(POLL_MS, undefined);
      const news = await (poll === undefined ? upcoming : Promise.race([upcoming, poll]));
      if (news === undefined) {
        poll = undefined;
        const data = await newState?.();
        // A client that reconnects with this id misses no event.
        if (data !== undefined) yield [{ seq: last, event: "state_update", data }];
        continue;
      }
      upcoming = undefined;
      if (news === "recreated") {
        last = 0;
        checkedTurn = undefined;
        continue;
      }
      if (typeof news === "string") return news;
      if (news.run.turn !== checkedTurn && !(await readAccess.stillExists())) return "lost";
      checkedTurn = news.run.turn;
      const sent = sentOf(news, modes, last);
      last = Number(sent.at(-1)?.seq ?? last);
      if (sent.length > 0) yield sent;
    }
  }

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
        const runs = hub.readThread(threadId, from, "first", {
          liveTurn: isLive ? running : undefined,
          caller,
        });
        const events = read(runs, modes, from, readAccess, newState);
        const reader = { next: async () => (await events.next()).value, close: () => runs.close() };
        return { from, readAccess, reader };
      } finally {
        unfollow();
      }
    },
  };
};

export type ThreadStreamService = ReturnType<typeof createThreadStreamService>;
