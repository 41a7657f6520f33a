import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** Metadata, tags and configurations with thousands of names, as many as fit into a request. */

const MANY = 5_000;
/** The maximum for metadata. */
const MANY_METADATA = 2_000;
const named = (prefix: string, count = MANY): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, index]));
const TAGS = Array.from({ length: MANY }, (_, index) => `tag-${index}`);
/** Far longer than it takes if the names are handled once and not with each message, even on a busy machine. */
const HELD_UP_MS = 10_000;
const GREETING = { assistant_id: "agent", input: { messages: "hello" }, stream_mode: ["messages"] };

describe.each([
  ["in the server's own process", 0],
  ["in a graph process", 1],
])("a run %s", (_, graphProcesses) => {
  let server: TestServer;
  let api: Api;
  beforeAll(async () => {
    server = await startTestServer({ graphProcesses });
    api = apiOf(server);
    // Loading at the first run is not measured.
    await textOf("/runs/stream", GREETING);
  });
  afterAll(() => server.close());

  const textOf = async (path: string, body: object): Promise<string> => {
    const answer = await fetch(`${server.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return await answer.text();
  };

  const longestProbe = async (done: Promise<unknown>): Promise<number> => {
    let isDone = false;
    const end = (): void => void (isDone = true);
    done.then(end, end);
    let longest = 0;
    while (!isDone) {
      const begun = performance.now();
      await api.get("/ok");
      longest = Math.max(longest, performance.now() - begun);
    }
    await done;
    return longest;
  };

  test.each([
    ["metadata", { metadata: named("k", MANY_METADATA) }],
    ["tags", { config: { tags: TAGS } }],
    ["configurable", { config: { configurable: named("k") } }],
    ["context", { context: named("k") }],
  ])(
    "with thousands of names in its %s streams messages while other requests are answered",
    async (_field, given) => {
      const body = {
        assistant_id: "agent",
        input: { messages: "hello" },
        stream_mode: ["messages"],
        ...given,
      };
      const begun = performance.now();
      const streamed = textOf("/runs/stream", body);
      expect(await longestProbe(streamed)).toBeLessThan(HELD_UP_MS);
      expect(await streamed).toContain("event: messages");
      expect(performance.now() - begun).toBeLessThan(6 * HELD_UP_MS);
    },
  );

  test("keeps all names, also those of its assistant and its thread, and is found by each", async () => {
    const { body: assistant } = await api.post<{ assistant_id: string }>("/assistants", {
      graph_id: "agent",
      metadata: named("assistant", MANY_METADATA),
      config: { tags: TAGS },
    });
    const { body: thread } = await api.post<{ thread_id: string }>("/threads", {
      metadata: named("thread", MANY_METADATA),
    });
    const path = `/threads/${thread.thread_id}`;
    const run = { ...GREETING, assistant_id: assistant.assistant_id, metadata: { own: true } };
    const streamed = textOf(`${path}/runs/stream`, run);
    expect(await longestProbe(streamed)).toBeLessThan(HELD_UP_MS);
    expect(await streamed).toContain("event: messages");
    const [stored] = (await api.get<RunRecord[]>(`${path}/runs`)).body;
    expect(stored?.metadata).toMatchObject({ own: true, assistant1999: 1_999, thread1999: 1_999 });
    const found = await api.post<RunRecord[]>("/runs/search", { metadata: { thread1999: 1_999 } });
    expect(found.body.map(({ run_id }) => run_id)).toEqual([stored?.run_id]);
  });
});
