import type { Caller } from "../../access/caller.ts";
import type { CreatedRun, ResultReadOptions, RunResult } from "../../api/runs/joining/results.ts";
import type { RunService } from "../../api/runs/service.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { LARGE_ANSWER_BYTES } from "../../platform/lib/large-answers.ts";

export interface Interrupt {
  id: string;
  /** Of the graph's `interrupt(value)`. */
  value: JsonValue;
}

/** The end of a run. `values`: the state of the graph. */
export type Outcome =
  | { kind: "completed"; values: JsonObject }
  | { kind: "interrupted"; values: JsonObject; interrupts: readonly Interrupt[] }
  | { kind: "cancelled"; values: JsonObject }
  | { kind: "failed"; error: { error: string; message: string } };

const asObject = (values: JsonValue): JsonObject =>
  typeof values === "object" && values !== null && !Array.isArray(values) ? values : { output: values };

const outcomeOf = ({ status, text }: RunResult): Outcome => {
  const { __error__: error, __interrupt__: interrupts, ...values } = asObject(JSON.parse(text) as JsonValue);
  if (error !== undefined) return { kind: "failed", error: error as { error: string; message: string } };
  if (status === "interrupted") return { kind: "cancelled", values };
  if (Array.isArray(interrupts) && interrupts.length > 0)
    return { kind: "interrupted", values, interrupts: interrupts as unknown as Interrupt[] };
  return { kind: "completed", values };
};

export interface Outcomes {
  /** Waits for the end of a run that this request created. */
  ofCreated(created: CreatedRun, options: ResultReadOptions): Promise<Outcome>;
  /** Waits for the end of any run of the caller. Throws `runNotFound`. */
  of(caller: Caller, selector: RunSelector, options: ResultReadOptions): Promise<Outcome>;
}

export const createOutcomes = (joining: RunService["joining"]): Outcomes => ({
  async ofCreated(created, options) {
    const result = await joining.result(created, options);
    // The values of a run in this process come without a read that asks for room.
    if (result.text.length >= LARGE_ANSWER_BYTES) await options.budget.reserve(result.text.length);
    return outcomeOf(result);
  },
  of: async (caller, selector, options) => outcomeOf(await joining.join(caller, selector, options)),
});
