import { expect, it } from "vitest";
import type { Caller } from "../../../src/access/caller.ts";
import { createArgumentReader } from "../../../src/protocols/mcp/calling.ts";

const CALLER = { kind: "anonymous" } as Caller;
const THREAD = "7c1c7f0e-3f0e-4a58-9d9b-2f5c3a0c5d11";

const read = async (properties: object, given: Record<string, string>) => {
  const schemas = async () => ({ input_schema: { properties } }) as never;
  const reader = createArgumentReader({ schemas });
  return await reader(CALLER, { assistantId: "agent", arguments: given });
};

it("a call's arguments are the input, without those of the server", async () => {
  expect(await read({}, { text: "hi", thread_id: THREAD })).toEqual({
    threadId: THREAD,
    resume: undefined,
    input: { text: "hi" },
  });
});

it("a graph with a field of the server's name gets the argument itself", async () => {
  expect(await read({ thread_id: {}, resume: {} }, { thread_id: "12", resume: "all" })).toEqual({
    threadId: undefined,
    resume: undefined,
    input: { thread_id: "12", resume: "all" },
  });
});

it("a graph with an input named as what objects inherit gets it, too", async () => {
  expect((await read({}, { constructor: "x", resume: "y", thread_id: THREAD })).input).toEqual({
    constructor: "x",
  });
});
