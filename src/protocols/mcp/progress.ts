import type { CreatedRun } from "../../api/runs/joining/results.ts";
import type { RunService } from "../../api/runs/service.ts";
import { isJsonObject, type JsonValue } from "../../platform/lib/json.ts";
import { createTimeSlicer } from "../../platform/lib/time-slicer.ts";
import { eventsOf } from "../calls/events.ts";
import type { Exchange } from "./exchange.ts";

/** Parsing events must not delay other requests. */
const SLICE_MS = 10;

export type OnProgress = (progress: number, message: string) => Promise<void>;

/** Of a node that has ended. */
const endedIn = (step: JsonValue): string | undefined =>
  isJsonObject(step) && step["ended"] === true && typeof step["name"] === "string" ? step["name"] : undefined;

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
    try {
      let progress = 0;
      for await (const { event, data } of eventsOf(reader, slicer)) {
        if (signal.aborted) return;
        const node = event === "steps" ? endedIn(data) : undefined;
        if (node === undefined) continue;
        progress += 1;
        // A client that reads slowly misses progress only.
        if (exchange.isTaken()) await onProgress(progress, node);
      }
    } catch (error) {
      exchange.onFault(error, "the progress of a call could not be sent");
    } finally {
      signal.removeEventListener("abort", close);
    }
  };
};
