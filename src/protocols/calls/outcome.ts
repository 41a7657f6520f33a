import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { CreatedRun, ResultReadOptions, RunResult } from "../../api/runs/joining/results.ts";
import type { RunService } from "../../api/runs/service.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import type { RunReader } from "../../engine/events/channel.ts";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";

export interface Interrupt {
  id: string;
  /** Of the graph's `interrupt(value)`. */
  value: JsonValue;
}

/** The end of a run. `values`: what LangGraph's `invoke` returns, unless the whole state was asked for. */
export type Outcome =
  | { kind: "completed"; values: JsonObject }
  | { kind: "interrupted"; values: JsonObject; interrupts: readonly Interrupt[] }
  | { kind: "cancelled"; values: JsonObject }
  | { kind: "failed"; error: { error: string; message: string } };

/** The fields of these names. */
export const picked = (values: JsonObject, keys: readonly string[]): JsonObject => {
  const kept = new Set(keys);
  return Object.fromEntries(Object.entries(values).filter(([key]) => kept.has(key)));
};

const returnedOf = (state: JsonObject, outputKeys: RunResult["outputKeys"]): JsonObject =>
  outputKeys === undefined ? state : picked(state, outputKeys);

const asObject = (values: JsonValue): JsonObject =>
  typeof values === "object" && values !== null && !Array.isArray(values) ? values : { output: values };

export interface OutcomeOptions extends ResultReadOptions {
  /** Also the channels that the graph keeps to itself. */
  isWhole?: boolean;
}

const outcomeOf = ({ status, text, outputKeys }: RunResult, { isWhole }: OutcomeOptions): Outcome => {
  const { __error__: error, __interrupt__: interrupts, ...state } = asObject(JSON.parse(text) as JsonValue);
  const values = isWhole === true ? state : returnedOf(state, outputKeys);
  if (error !== undefined) return { kind: "failed", error: error as { error: string; message: string } };
  if (status === "interrupted") return { kind: "cancelled", values };
  if (Array.isArray(interrupts) && interrupts.length > 0)
    return { kind: "interrupted", values, interrupts: interrupts as unknown as Interrupt[] };
  return { kind: "completed", values };
};

export const createOutcomes = (
  authorize: Authorize,
  joining: RunService["joining"],
  states: Pick<ThreadService["states"], "valuesOfRun">,
) => ({
  /** Waits for the end of a run that this request created. */
  ofCreated: async (created: CreatedRun, options: OutcomeOptions): Promise<Outcome> =>
    outcomeOf(await joining.result(created, options), options),

  /** Waits for the end of any run of the caller. Throws `runNotFound`. */
  of: async (caller: Caller, selector: RunSelector, options: OutcomeOptions): Promise<Outcome> =>
    outcomeOf(await joining.join(caller, selector, options), options),

  /** The output of a run in progress, from its newest state. */
  async soFar(caller: Caller, selector: RunSelector, signal: AbortSignal): Promise<JsonObject> {
    const { threadId, runId } = selector;
    const visibility = await authorize(caller, "threads", "read", { thread_id: threadId, run_id: runId });
    const { values, outputKeys } = await states.valuesOfRun(visibility, selector, caller, signal);
    return returnedOf(asObject(JSON.parse(values ?? "{}") as JsonValue), outputKeys);
  },
});

export interface CallEvent {
  /** Id within the run, in order. */
  seq: number;
  /** A stream mode, with the namespace of a subgraph: `messages|child:<id>`. */
  event: string;
  data: JsonValue;
}

/**
 * The parsed events of a run. Returns `ended` after the last one, or `lost` if events are missing: then the client must
 * be cut off, so that it resumes. Closes the reader.
 */
export async function* eventsOf(
  reader: RunReader,
  slicer: TimeSlicer,
): AsyncGenerator<CallEvent, "ended" | "lost"> {
  try {
    for (;;) {
      const events = await reader.next();
      if (typeof events === "string") return events;
      for (const { seq, event, data } of events) {
        await slicer.next();
        yield { seq, event, data: JSON.parse(data) as JsonValue };
      }
    }
  } finally {
    reader.close();
  }
}
