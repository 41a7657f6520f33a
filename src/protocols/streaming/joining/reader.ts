import { beforeTurn } from "../../../engine/events/event-ids.ts";
import type { ThreadEvents, ThreadReader } from "../../../engine/events/readers/thread-reader.ts";
import type { EventReader, SentEvent } from "../../../engine/events/transports/event-sink.ts";
import type { ThreadStreamMode } from "./schemas.ts";

export interface ThreadStreamOptions {
  runs: ThreadReader;
  modes: ReadonlySet<ThreadStreamMode>;
  /** The id after which events are told. */
  after: number;
  /** A state that was written by hand since the last look, as data of an event; undefined if none was. Undefined: none is told. */
  newState: (() => Promise<string | undefined>) | undefined;
  /** Asked before a run is told: the thread may be gone (false), or the caller has lost it (rejects, which ends the stream). */
  isStillSeen: () => Promise<boolean>;
}

/** States that are written by hand are looked for this often: nobody says that they were. */
const POLL_MS = 500;

/** What a thread's stream tells, with ids that rise over its runs. */
export const readThreadStream = (options: ThreadStreamOptions): EventReader => {
  const { runs, modes, after, newState, isStillSeen } = options;
  let last = after;
  let checkedTurn: number | undefined;
  let pending: Promise<ThreadEvents | "anew" | "ended" | "lost"> | undefined;
  let isClosed = false;
  let wake: (() => void) | undefined;

  const toSent = ({ runId, run, events, isOver }: ThreadEvents): SentEvent[] => {
    if (isOver) {
      // The id that no event of the run's turn has, and none behind it is below.
      const seq = beforeTurn(run.turn + 1);
      if (seq <= last || !(modes.has("run_modes") || modes.has("lifecycle"))) return [];
      return [{ seq, event: "metadata", data: JSON.stringify({ status: "run_done", run_id: runId }) }];
    }
    return events
      .filter(({ event }) => modes.has("run_modes") || (modes.has("lifecycle") && event === "metadata"))
      .map(({ threadSeq = 0, event, data }) => ({ seq: threadSeq, event, data }));
  };

  /** The next news of the runs; undefined if it is time to look for a new state. */
  const nextNews = async (): Promise<ThreadEvents | "anew" | "ended" | "lost" | undefined> => {
    pending ??= runs.next();
    if (newState === undefined) return await pending;
    let timer: NodeJS.Timeout | undefined;
    const poll = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, POLL_MS, undefined);
      wake = () => resolve(undefined);
    });
    try {
      return await Promise.race([pending, poll]);
    } finally {
      clearTimeout(timer);
    }
  };

  return {
    async next() {
      for (;;) {
        const news = await nextNews();
        if (isClosed) return "ended";
        if (news === undefined) {
          const data = await newState?.();
          // Between two runs: who comes back with this id misses nothing of either.
          if (data !== undefined) return [{ seq: last, event: "state_update", data }];
          continue;
        }
        pending = undefined;
        if (news === "anew") {
          last = 0;
          checkedTurn = undefined;
          continue;
        }
        if (typeof news === "string") return news;
        if (news.run.turn !== checkedTurn) {
          if (!(await isStillSeen())) return "lost";
          checkedTurn = news.run.turn;
        }
        const sent = toSent(news);
        last = sent.at(-1) === undefined ? last : Number(sent.at(-1)?.seq);
        if (sent.length > 0) return sent;
      }
    },
    close() {
      isClosed = true;
      runs.close();
      wake?.();
    },
  };
};
