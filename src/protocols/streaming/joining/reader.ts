import { beforeTurn } from "../../../engine/events/event-ids.ts";
import type { ThreadEvents, ThreadReader } from "../../../engine/events/readers/thread-reader.ts";
import type { EventReader, SentEvent } from "../../../engine/events/transports/event-sink.ts";
import type { ThreadStreamMode } from "./schemas.ts";

export interface ThreadStreamOptions {
  runs: ThreadReader;
  modes: ReadonlySet<ThreadStreamMode>;
  after: number;
  /** The data of an event; undefined without an update since the last call. */
  newState: (() => Promise<string | undefined>) | undefined;
  /** False for a deleted thread; rejects if the caller lost access. */
  isStillSeen: () => Promise<boolean>;
}

/** Updates of a state send no signal. */
const POLL_MS = 500;

/** Event ids rise over the runs of the thread. */
export const readThreadStream = (options: ThreadStreamOptions): EventReader => {
  const { runs, modes, after, newState, isStillSeen } = options;
  let last = after;
  let checkedTurn: number | undefined;
  let pending: Promise<ThreadEvents | "recreated" | "ended" | "lost"> | undefined;
  let isClosed = false;
  let wake: (() => void) | undefined;

  const toSent = ({ runId, run, events, isOver }: ThreadEvents): SentEvent[] => {
    if (isOver) {
      // No event of the run has this id, and later runs have higher ones.
      const seq = beforeTurn(run.turn + 1);
      if (seq <= last || !(modes.has("run_modes") || modes.has("lifecycle"))) return [];
      return [{ seq, event: "metadata", data: JSON.stringify({ status: "run_done", run_id: runId }) }];
    }
    return events
      .filter(({ event }) => modes.has("run_modes") || (modes.has("lifecycle") && event === "metadata"))
      .map(({ threadSeq = 0, event, data }) => ({ seq: threadSeq, event, data }));
  };

  const nextNews = async (): Promise<ThreadEvents | "recreated" | "ended" | "lost" | undefined> => {
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
          // A client that reconnects with this id misses no event.
          if (data !== undefined) return [{ seq: last, event: "state_update", data }];
          continue;
        }
        pending = undefined;
        if (news === "recreated") {
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
