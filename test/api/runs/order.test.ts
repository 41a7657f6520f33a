import { fileURLToPath } from "node:url";
import { InMemoryStore, MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { TEST_KEYS } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";
import { buildOrder } from "./graphs/order.ts";

/** The order of keys in what users say. Models write the fields of a schema in its order, and prompts are made from objects. */

const CONTEXT = {
  format: { reasoning: { type: "string" }, answer: [{ z: 1, b: 1e21 }], id: 1 },
  zone: 1,
  age: null,
};
const SHAPE = { reasoning: "r", answer: "a", id: 1 };
const CONFIGURABLE = { shape: SHAPE, zeal: 1.5, any: "" };
const ITEM = { reasoning: "r", kind: "ordered", id: { z: 1, b: 2 } };
const QUESTION = { reasoning: "r", answer: "a", id: [{ z: 1, b: 2 }] };

const GIVEN = { context: CONTEXT, config: { configurable: CONFIGURABLE } };
const RUN = { assistant_id: "order", input: {} };

/** What LangGraph.js itself gives to the node. */
const local = async (
  input: object,
  context: Record<string, unknown> = CONTEXT,
  configurable: object = CONFIGURABLE,
) => {
  const graph = buildOrder({ checkpointer: new MemorySaver(), store: new InMemoryStore() });
  const options = { context, configurable: { thread_id: "one", ...configurable } };
  return (await graph.invoke(input, options)).seen;
};

/** As text: comparisons of objects ignore the order. */
const textOf = (value: unknown): string => JSON.stringify(value);

describe.each([
  ["", []],
  [", encrypted", TEST_KEYS],
])("the order of keys%s", (_, encryptionKeys) => {
  let server: TestServer;
  let api: Api;
  onServer(
    {
      graphConfigFile: fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url)),
      encryptionKeys,
    },
    (opened) => ({ server, api } = opened),
  );

  interface Assistant {
    assistant_id: string;
    config: object;
    context: object;
  }
  const anAssistant = async (fields: object = GIVEN): Promise<string> =>
    (await api.post<Assistant>("/assistants", { graph_id: "order", ...fields })).body.assistant_id;
  const REVERSED = { context: { age: null, zone: 1 }, config: { configurable: { any: "", zeal: 1 } } };
  const seenBy = async (assistantId: string): Promise<unknown> =>
    (await api.post<{ seen: unknown }>("/runs/wait", { ...RUN, assistant_id: assistantId })).body.seen;
  const seenOn = async (threadId: string): Promise<unknown> => (await api.thread(threadId)).values?.seen;

  test.each<[string, () => Promise<unknown>]>([
    ["a run", async () => (await api.aFinishedRun(await api.aThread(), { ...RUN, ...GIVEN })).seen],
    [
      "a run without a thread",
      async () => (await api.post<{ seen: unknown }>("/runs/wait", { ...RUN, ...GIVEN })).body.seen,
    ],
    ["an assistant", async () => await seenBy(await anAssistant())],
    [
      "a changed assistant",
      async () => {
        const assistantId = await anAssistant(REVERSED);
        await api.patch(`/assistants/${assistantId}`, GIVEN);
        return await seenBy(assistantId);
      },
    ],
    [
      "a restored version of an assistant",
      async () => {
        const assistantId = await anAssistant();
        await api.patch(`/assistants/${assistantId}`, REVERSED);
        await api.post(`/assistants/${assistantId}/latest`, { version: 1 });
        return await seenBy(assistantId);
      },
    ],
    [
      "an earlier run of the thread",
      async () => {
        const threadId = await api.aThread();
        await api.aFinishedRun(threadId, { ...RUN, ...GIVEN });
        return (await api.aFinishedRun(threadId, RUN)).seen;
      },
    ],
    [
      "an earlier run of the thread's original",
      async () => {
        const threadId = await api.aThread();
        await api.aFinishedRun(threadId, { ...RUN, ...GIVEN });
        const { body } = await api.post<{ thread_id: string }>(`/threads/${threadId}/copy`);
        return (await api.aFinishedRun(body.thread_id, RUN)).seen;
      },
    ],
    [
      "a run whose thread has the same keys in another order",
      async () => {
        const threadId = await api.aThread();
        await api.aFinishedRun(threadId, { ...RUN, ...REVERSED });
        return (await api.aFinishedRun(threadId, { ...RUN, ...GIVEN })).seen;
      },
    ],
    [
      "a run that waits behind another",
      async () => {
        const threadId = await api.aThread();
        await api.aRun(threadId, { ...RUN, ...REVERSED });
        const { run_id: runId } = await api.aRun(threadId, { ...RUN, ...GIVEN });
        return (await api.join(threadId, runId)).seen;
      },
    ],
    [
      "a run that a batch created",
      async () => {
        const { body } = await api.post<{ thread_id: string; run_id: string }[]>(
          "/runs/batch",
          [1, 2].map(() => ({ ...RUN, ...GIVEN, on_completion: "keep" })),
        );
        const [{ thread_id: threadId, run_id: runId }] = body as [(typeof body)[0]];
        await api.untilRunIs(threadId, runId, "success");
        return await seenOn(threadId);
      },
    ],
    [
      "a run that was resumed",
      async () => {
        const threadId = await api.aThread();
        await api.aFinishedRun(threadId, { ...RUN, ...GIVEN, input: { question: "?" } });
        return (await api.aFinishedRun(threadId, { ...RUN, input: undefined, command: { resume: "!" } }))
          .seen;
      },
    ],
    [
      "a cron",
      async () => {
        const threadId = await api.aThread();
        const cron = { ...RUN, ...GIVEN, schedule: "0 0 1 1 *" };
        const { body } = await api.post<{ cron_id: string; payload: object }>(
          `/threads/${threadId}/runs/crons`,
          cron,
        );
        expect(textOf(body.payload)).toContain(textOf(CONTEXT));
        await query(server, "update threadloom.crons set next_run_date = now() where cron_id = $1", [
          body.cron_id,
        ]);
        await api.patch(`/runs/crons/${body.cron_id}`, {});
        const search = { metadata: { cron_id: body.cron_id } };
        await expect.poll(async () => (await api.post("/runs/search", search)).body).toHaveLength(1);
        await api.untilQuiet(threadId);
        return await seenOn(threadId);
      },
    ],
  ])("reaches the graph as the author wrote it, from %s", async (_from, seen) => {
    expect(await seen()).toBe(await local({}));
  });

  test("puts the keys of the assistant before those that a run adds, as those of the run stand", async () => {
    const assistantId = await anAssistant({ context: { zone: 1, age: 2 } });
    const threadId = await api.aThread();
    const context = { id: 1, age: 3 };
    const { seen } = await api.aFinishedRun(threadId, { ...RUN, assistant_id: assistantId, context });
    expect(seen).toBe(await local({}, { zone: 1, id: 1, age: 3 }, {}));
  });

  test("stays in items of the store, for a graph that gets and finds them, and for clients", async () => {
    // Encrypted items can't be found by their values.
    const input = { item: ITEM, ...(encryptionKeys.length === 0 ? { filter: { kind: "ordered" } } : {}) };
    const { seen } = await api.aFinishedRun(await api.aThread(), { ...RUN, ...GIVEN, input });
    expect(seen).toBe(await local(input));
    const namespace = ["clients"];
    await fetch(`${api.url}/store/items`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: textOf({ namespace, key: "one", value: ITEM }),
    });
    const item = await api.get("/store/items?namespace=clients&key=one");
    expect(item.text).toContain(textOf(ITEM));
    const found = await api.post("/store/items/search", { namespace_prefix: namespace });
    expect(found.text).toContain(textOf(ITEM));
  });

  test("stays in every answer about an assistant", async () => {
    const config = { later: 1, recursion_limit: 9, configurable: CONFIGURABLE, early: { z: 1, b: 2 } };
    const assistantId = await anAssistant({ config, context: CONTEXT, metadata: { order: "told" } });
    const answers = [
      await api.get(`/assistants/${assistantId}`),
      await api.post("/assistants/search", { metadata: { order: "told" } }),
      await api.post(`/assistants/${assistantId}/versions`, {}),
      await api.patch(`/assistants/${assistantId}`, { config, context: CONTEXT }),
      await api.post(`/assistants/${assistantId}/latest`, { version: 1 }),
    ];
    for (const { text } of answers) {
      expect(text).toContain(textOf(config));
      expect(text).toContain(textOf(CONTEXT));
    }
  });

  test("stays in every answer about a thread and its runs", async () => {
    const threadId = await api.aThread({ metadata: { order: "asked" } });
    const input = { question: QUESTION };
    const { run_id: runId } = await api.aRun(threadId, { ...RUN, ...GIVEN, input });
    await api.untilQuiet(threadId);
    for (const { text } of [
      await api.get(`/threads/${threadId}`),
      await api.post("/threads/search", { ids: [threadId] }),
      await api.post(`/threads/${threadId}/copy`),
    ]) {
      expect(text).toContain(textOf({ configurable: CONFIGURABLE, context: CONTEXT }));
      expect(text).toMatch(/"interrupts":\{/);
      expect(text.split(textOf(QUESTION))).toHaveLength(3);
    }
    const { text } = await api.get(`/threads/${threadId}/runs/${runId}`);
    for (const said of [CONTEXT, CONFIGURABLE, input]) expect(text).toContain(textOf(said));
  });
});
