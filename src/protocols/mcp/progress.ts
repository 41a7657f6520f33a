import type { CreatedRun } from "../../api/runs/joining/results.ts";
import type { RunService } from "../../api/runs/service.ts";
import { createTimeSlicer } from "../../platform/lib/time-slicer.ts";
import { eventsOf } from "../calls/events.ts";
import type { Exchange } from "./exchange.ts";

/** Parsing events must not delay other requests. */
const SLICE_MS = 10;

export type OnProgress = (progress: number, message: string) => Promise<void>;

interface Step {
  name: string;
  ended: boolean;
  asked?: boolean;
  wrote?: boolean;
}

/** Names the nodes that have ended, but not those that asked or failed. */
const createEndedNodes = () => {
  /** Ended without a result: they may have failed. */
  let uncertain: string[] = [];
  return ({ name, ended, asked, wrote }: Step): readonly string[] => {
    if (ended && wrote) return asked ? [] : [name];
    if (ended && !asked) uncertain.push(name);
    if (ended) return [];
    // A graph goes on only after tasks that did not fail.
    const names = uncertain;
    uncertain = [];
    return names;
  };
};

export const createProgressReporter = ({ readCreated }: Pick<RunService["joining"], "readCreated">) => {
  const slicer = createTimeSlicer(SLICE_MS);

  /** Reports the nodes of a run until its end, or until `signal`. A failure costs the client only its progress. */
  return async (
    created: CreatedRun,
    onProgress: OnProgress,
    exchange: Exchange,
    signal: AbortSignal,
  ): Promise<void> => {
    const reader = readCreated(created);
    const close = (): void => reader.close();
    signal.addEventListener("abort", close);
    if (signal.aborted) close();
    try {
      let progress = 0;
      const endedIn = createEndedNodes();
      for await (const { event, data } of eventsOf(reader, slicer)) {
        if (signal.aborted) return;
        for (const node of event === "steps" ? endedIn(data as unknown as Step) : []) {
          progress += 1;
          // A client that reads slowly misses progress only.
          if (exchange.isTaken()) await onProgress(progress, node);
        }
      }
    } catch (error) {
      exchange.onFault(error, "the progress of a call could not be sent");
    } finally {
      signal.removeEventListener("abort", close);
    }
  };
};
