import type { Caller } from "../../access/caller.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import { unavailable } from "../../platform/domain/errors.ts";
import { createGate } from "../../platform/lib/gate.ts";
import { isJsonObject, type JsonObject } from "../../platform/lib/json.ts";
import type { ReadBudget } from "../../platform/lib/large-answers.ts";
import { createHash } from "node:crypto";
import type { JsonPatch } from "@ag-ui/core";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";

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

const pointerTo = (key: string): string => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** Follows a graph's state by digests of its keys, so that an open stream holds no state. */
export const createStateChanges = (slicer: TimeSlicer) => {
  let known = new Map<string, string>();

  return {
    /** A JSON Patch of the keys that changed since the last call. */
    async since(state: JsonObject): Promise<JsonPatch> {
      const patch: JsonPatch = [];
      const digests = new Map<string, string>();
      for (const [key, value] of Object.entries(state)) {
        await slicer.next();
        const digest = createHash("sha1").update(JSON.stringify(value)).digest("base64");
        digests.set(key, digest);
        // `add` also replaces a member.
        if (known.get(key) !== digest) patch.push({ op: "add", path: pointerTo(key), value });
      }
      for (const key of known.keys())
        if (!digests.has(key)) patch.push({ op: "remove", path: pointerTo(key) });
      known = digests;
      return patch;
    },
  };
};
