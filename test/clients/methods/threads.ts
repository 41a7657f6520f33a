import { expect } from "vitest";
import { aThread, aThreadWithState, HELLO, refusalOf, textsOf, TWO_STEP_TEXTS, type Calls } from "./calls.ts";

export const THREAD_CALLS: Calls = {
  "threads.get": async (client) => {
    const threadId = await aThreadWithState(client);
    const thread = await client.threads.get(threadId);
    expect(thread).toMatchObject({ thread_id: threadId, status: "idle" });
    expect(textsOf(thread.values)).toEqual(TWO_STEP_TEXTS);
  },
  "threads.create": async ({ threads }) => {
    const threadId = crypto.randomUUID();
    const created = await threads.create({ threadId, graphId: "agent", metadata: { a: 1 }, ttl: 60 });
    expect(created).toMatchObject({ thread_id: threadId, metadata: { a: 1, graph_id: "agent" } });
    expect(await refusalOf(threads.create({ threadId }))).toBe(409);
    expect(await threads.create({ threadId, ifExists: "do_nothing" })).toMatchObject({ thread_id: threadId });
    const supersteps = [1, 2].map((count) => ({ updates: [{ values: { count }, asNode: "increment" }] }));
    const { thread_id: replayed } = await threads.create({ graphId: "counter", supersteps });
    expect(await threads.getState(replayed)).toMatchObject({ values: { count: 3 } });
  },
  "threads.copy": async (client) => {
    const threadId = await aThreadWithState(client);
    const copy = await client.threads.copy(threadId);
    expect(copy.thread_id).not.toBe(threadId);
    expect(textsOf((await client.threads.getState(copy.thread_id)).values)).toEqual(TWO_STEP_TEXTS);
  },
  "threads.update": async (client) => {
    const threadId = await aThread(client, { metadata: { a: 1 } });
    expect(await client.threads.update(threadId, { metadata: { b: 2 } })).toMatchObject({
      metadata: { a: 1, b: 2 },
    });
    // Lines without this option omit it and get the thread.
    await client.threads.update(threadId, { metadata: { b: 3 }, returnMinimal: true });
    expect(await client.threads.get(threadId)).toMatchObject({ metadata: { a: 1, b: 3 } });
  },
  "threads.delete": async (client) => {
    const threadId = await aThread(client);
    await client.threads.delete(threadId);
    expect(await refusalOf(client.threads.get(threadId))).toBe(404);
  },
  "threads.prune": async (client) => {
    const threadId = await aThreadWithState(client);
    expect(await client.threads.prune([threadId], { strategy: "keep_latest" })).toEqual({ pruned_count: 1 });
    expect(await client.threads.getHistory(threadId)).toHaveLength(1);
    expect(await client.threads.prune([threadId])).toEqual({ pruned_count: 1 });
    expect(await refusalOf(client.threads.get(threadId))).toBe(404);
  },
  "threads.search": async (client) => {
    const mark = crypto.randomUUID();
    const ids = [
      await aThread(client, { metadata: { mark } }),
      await aThread(client, { metadata: { mark } }),
    ];
    const query = { metadata: { mark }, status: "idle", sortBy: "created_at", sortOrder: "asc" } as const;
    const found = await client.threads.search({ ...query, limit: 5 });
    expect(found.map(({ thread_id }) => thread_id)).toEqual(ids);
    expect((await client.threads.search({ ...query, offset: 1 })).map((thread) => thread.thread_id)).toEqual([
      ids[1],
    ]);
  },
  "threads.count": async (client) => {
    const mark = crypto.randomUUID();
    await aThread(client, { metadata: { mark } });
    expect(await client.threads.count({ metadata: { mark }, status: "idle" })).toBe(1);
  },
  "threads.getState": async (client) => {
    const threadId = await aThreadWithState(client);
    const state = await client.threads.getState(threadId, undefined, { subgraphs: true });
    expect(textsOf(state.values)).toEqual(TWO_STEP_TEXTS);
    expect(state).toMatchObject({ next: [], tasks: [] });
    const earlier = state.parent_checkpoint;
    for (const checkpoint of [earlier?.checkpoint_id as string, earlier!]) {
      expect(await client.threads.getState(threadId, checkpoint)).toMatchObject({ next: ["second"] });
    }
    expect(await client.threads.getState(await aThread(client))).toMatchObject({ values: {}, next: [] });
  },
  "threads.updateState": async (client) => {
    const threadId = await aThreadWithState(client);
    const updated = await client.threads.updateState(threadId, {
      values: { messages: [{ role: "user", content: "more" }] },
      asNode: "second",
    });
    expect(updated.configurable).toMatchObject({ thread_id: threadId });
    const { values, checkpoint } = await client.threads.getState(threadId);
    expect(textsOf(values)).toEqual([...TWO_STEP_TEXTS, "more"]);
    expect(updated).toMatchObject({ checkpoint: { checkpoint_id: checkpoint.checkpoint_id } });
  },
  "threads.patchState": async (client) => {
    const threadId = await aThreadWithState(client);
    await client.threads.patchState(threadId, { colour: "blue" });
    expect((await client.threads.getState(threadId)).metadata).toMatchObject({ colour: "blue" });
  },
  "threads.getHistory": async (client) => {
    const threadId = await aThreadWithState(client);
    const history = await client.threads.getHistory(threadId, { limit: 2 });
    expect(history.map(({ next }) => next)).toEqual([[], ["second"]]);
    const checkpoint_id = history[1]!.checkpoint.checkpoint_id;
    const rest = await client.threads.getHistory(threadId, { before: { configurable: { checkpoint_id } } });
    expect(rest.map(({ next }) => next)).toEqual([["first"], ["__start__"]]);
  },
  "threads.joinStream": async (client) => {
    const threadId = await aThread(client);
    const leave = new AbortController();
    const joined = client.threads.joinStream(threadId, {
      streamMode: "run_modes",
      lastEventId: "-1",
      signal: leave.signal,
    });
    const { run_id } = await client.runs.create(threadId, "two-step", {
      input: HELLO,
      streamMode: "updates",
      // The stream connects at the first read: the run may be over by then.
      streamResumable: true,
    });
    const received: string[] = [];
    for await (const { event, data } of joined) {
      received.push(event);
      if (event === "metadata") expect(data).toMatchObject({ run_id });
      if (event === "updates" && "second" in (data as object)) break;
    }
    leave.abort();
    expect(received.filter((event) => event === "updates")).toHaveLength(2);
  },
  "threads.stream": async (client) => {
    const thread = client.threads.stream({ assistantId: "two-step" });
    try {
      const { run_id } = await thread.run.start({ input: HELLO });
      expect(run_id).toMatch(/^[0-9a-f-]{36}$/);
      expect(textsOf(await thread.output)).toEqual(TWO_STEP_TEXTS);
      expect(textsOf((await client.threads.getState(thread.threadId)).values)).toEqual(TWO_STEP_TEXTS);
    } finally {
      await thread.close();
    }
  },
};
