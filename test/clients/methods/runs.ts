import { expect } from "vitest";
import { collected } from "../../helpers/collected.ts";
import {
  aLongRun,
  aThread,
  aThreadWithState,
  HELLO,
  LONG,
  refusalOf,
  textsOf,
  TWO_STEP_TEXTS,
  type Calls,
} from "./calls.ts";

export const RUN_CALLS: Calls = {
  "runs.stream": async (client) => {
    for (const threadId of [await aThread(client), null]) {
      let announced: { run_id: string; thread_id?: string } | undefined;
      const options = {
        input: HELLO,
        streamMode: ["updates" as const, "messages-tuple" as const],
        onRunCreated: (run: { run_id: string; thread_id?: string }) => (announced = run),
      };
      const events = await collected(
        threadId === null
          ? client.runs.stream(null, "two-step", options)
          : client.runs.stream(threadId, "two-step", options),
      );
      expect(events[0]).toMatchObject({ event: "metadata", data: { run_id: announced?.run_id } });
      const updates = events.filter(({ event }) => event === "updates");
      expect(updates.map(({ data }) => Object.keys(data as object)[0])).toEqual(["first", "second"]);
      expect(events.map(({ event }) => event as string)).toContain("messages");
    }
  },
  "runs.create": async (client) => {
    const threadId = await aThread(client);
    let announced: unknown;
    const run = await client.runs.create(threadId, "two-step", {
      input: HELLO,
      metadata: { a: 1 },
      onRunCreated: (created) => (announced = created),
    });
    expect(run).toMatchObject({ thread_id: threadId, metadata: { a: 1 } });
    expect(announced).toEqual({ run_id: run.run_id, thread_id: threadId });
    const busy = await aLongRun(client);
    const second = { input: HELLO, multitaskStrategy: "reject" } as const;
    expect(await refusalOf(client.runs.create(busy.threadId, "two-step", second))).toBe(409);
    await client.runs.cancel(busy.threadId, busy.runId);
  },
  "runs.createBatch": async (client) => {
    const runs = await client.runs.createBatch([
      { assistantId: "two-step", input: HELLO, metadata: { index: 0 } },
      { assistantId: "two-step", input: HELLO, metadata: { index: 1 } },
    ]);
    expect(runs.map(({ metadata }) => metadata)).toMatchObject([{ index: 0 }, { index: 1 }]);
  },
  "runs.wait": async (client) => {
    const threadId = await aThread(client);
    expect(textsOf(await client.runs.wait(threadId, "two-step", { input: HELLO }))).toEqual(TWO_STEP_TEXTS);
    expect(textsOf(await client.runs.wait(null, "two-step", { input: HELLO }))).toEqual(TWO_STEP_TEXTS);
    const failing = { input: { reason: "out of luck" } };
    await expect(client.runs.wait(null, "failing", failing)).rejects.toThrow("out of luck");
    expect(await client.runs.wait(null, "failing", { ...failing, raiseError: false })).toMatchObject({
      __error__: { error: "Error", message: "out of luck" },
    });
  },
  "runs.list": async (client) => {
    const threadId = await aThreadWithState(client);
    expect(await client.runs.list(threadId, { status: "success", limit: 5 })).toHaveLength(1);
    expect(await client.runs.list(threadId, { select: ["status"] })).toEqual([{ status: "success" }]);
    expect(await client.runs.list(threadId, { status: "error" })).toEqual([]);
  },
  "runs.get": async (client) => {
    const { threadId, runId } = await aLongRun(client);
    expect(await client.runs.get(threadId, runId)).toMatchObject({ run_id: runId, thread_id: threadId });
    await client.runs.cancel(threadId, runId);
  },
  "runs.cancel": async (client) => {
    const interrupted = await aLongRun(client);
    await client.runs.cancel(interrupted.threadId, interrupted.runId, true);
    const { status } = await client.runs.get(interrupted.threadId, interrupted.runId);
    expect(status).toBe("interrupted");
    const rolledBack = await aLongRun(client);
    await client.runs.cancel(rolledBack.threadId, rolledBack.runId, true, "rollback");
    expect(await refusalOf(client.runs.get(rolledBack.threadId, rolledBack.runId))).toBe(404);
  },
  "runs.cancelMany": async (client) => {
    const { threadId, runId } = await aLongRun(client);
    await client.runs.cancelMany({ threadId, runIds: [runId] });
    await client.runs.join(threadId, runId);
    expect(await client.runs.get(threadId, runId)).toMatchObject({ status: "interrupted" });
  },
  "runs.join": async (client) => {
    const threadId = await aThread(client);
    const { run_id: runId } = await client.runs.create(threadId, "two-step", { input: HELLO });
    expect(textsOf(await client.runs.join(threadId, runId))).toEqual(TWO_STEP_TEXTS);
  },
  "runs.joinStream": async (client) => {
    const threadId = await aThread(client);
    const { run_id: runId } = await client.runs.create(threadId, "ten-steps", {
      input: {},
      streamMode: "updates",
      streamResumable: true,
    });
    await client.runs.join(threadId, runId);
    const all = await collected(client.runs.joinStream(threadId, runId, { lastEventId: "-1" }));
    expect(all.map(({ id }) => id)).toEqual(Array.from({ length: 11 }, (_, index) => String(index)));
    const rest = { lastEventId: "7", streamMode: ["updates" as const] };
    expect(await collected(client.runs.joinStream(threadId, runId, rest))).toEqual(all.slice(8));
    expect(await collected(client.runs.joinStream(null, runId, rest))).toEqual(all.slice(8));
  },
  "runs.delete": async (client) => {
    const threadId = await aThreadWithState(client);
    const [run] = await client.runs.list(threadId);
    await client.runs.delete(threadId, run!.run_id);
    expect(await client.runs.list(threadId)).toEqual([]);
    const going = await client.runs.create(threadId, "sleep", LONG);
    expect(await refusalOf(client.runs.delete(threadId, going.run_id))).toBe(409);
    await client.runs.cancel(threadId, going.run_id);
  },
};
