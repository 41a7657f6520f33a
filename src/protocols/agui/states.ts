import type { Caller } from "../../access/caller.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import { unavailable } from "../../platform/domain/errors.ts";
import { createGate } from "../../platform/lib/gate.ts";
import { isJsonObject, type JsonObject } from "../../platform/lib/json.ts";
import type { ReadBudget } from "../../platform/lib/large-answers.ts";

const LARGE_STATES_AT_ONCE = 4;
const PATIENCE_MS = 30_000;

/** An open stream must not hold a place in the budget of answers, so states are read through a gate. */
export const createStateReads = (states: Pick<ThreadService["states"], "read">) => {
  const gate = createGate(LARGE_STATES_AT_ONCE, PATIENCE_MS, () =>
    unavailable("Too many large states are being read at the moment."),
  );
  return async (
    caller: Caller,
    threadId: string,
    signal: AbortSignal,
  ): Promise<{ values: JsonObject; characters: number }> => {
    let leave: (() => void) | undefined;
    const budget: ReadBudget = {
      async reserve() {
        leave ??= await gate.enter(signal);
      },
    };
    try {
      const text = await states.read(caller, threadId, { select: ["values"], budget });
      const { values } = JSON.parse(text) as { values?: JsonObject | null };
      return { values: isJsonObject(values) ? values : {}, characters: text.length };
    } finally {
      leave?.();
    }
  };
};
