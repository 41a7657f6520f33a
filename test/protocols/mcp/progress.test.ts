import { expect, test } from "vitest";
import type { RunEvent } from "../../../src/engine/events/log.ts";
import { createProgressReporter } from "../../../src/protocols/mcp/exchange.ts";

interface Step {
  name: string;
  ended?: boolean;
  asked?: boolean;
  wrote?: boolean;
}

/** The names that a client gets of these steps. */
const namesOf = async (steps: readonly Step[]): Promise<string[]> => {
  const events = steps.map((step, seq): RunEvent => ({
    seq,
    event: "steps",
    data: JSON.stringify({ id: step.name, ended: false, ...step }),
  }));
  const batches: (RunEvent[] | "ended")[] = [events, "ended"];
  const report = createProgressReporter({
    readCreated: () => ({ next: async () => batches.shift()!, close: () => undefined }) as never,
  });
  const names: string[] = [];
  const onProgress = async (_progress: number, name: string) => void names.push(name);
  await report({} as never, onProgress, { isTaken: () => true } as never, new AbortController().signal);
  return names;
};

const begins = (name: string): Step => ({ name });
const writes = (name: string): Step => ({ name, ended: true, asked: false, wrote: true });
const isSilent = (name: string): Step => ({ name, ended: true, asked: false, wrote: false });
const asks = (name: string): Step => ({ name, ended: true, asked: true, wrote: false });

test("a node that wrote is named when it ends", async () => {
  expect(await namesOf([begins("a"), writes("a")])).toEqual(["a"]);
});

test("a node that wrote nothing is not named, because it may have failed", async () => {
  expect(await namesOf([begins("a"), isSilent("a"), begins("b"), writes("b")])).toEqual(["b"]);
});

test("a node that asked is not named", async () => {
  expect(await namesOf([begins("a"), asks("a"), begins("b"), writes("b")])).toEqual(["b"]);
});
