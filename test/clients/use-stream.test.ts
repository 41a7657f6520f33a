import { Client, type Checkpoint, type Message, type ThreadState } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";

/** The requests of the SDK's hook `useStream` (legacy transport, as in agent-chat-ui), step by step. */

let server: TestServer;
let client: Client;
beforeAll(async () => {
  server = await startTestServer();
  client = new Client({ apiUrl: server.url });
});
afterAll(() => server.close());

type Values = Record<string, unknown> & { messages: Message[]; __interrupt__?: unknown[] };
interface Shown {
  values?: Values;
  /** Combined from the tuples by id, like in the hook. */
  messages: Map<string, string>;
  runId?: string;
  events: string[];
}

/** `submit` of the hook: the modes that its getters request, the checkpoint without its thread. */
const submit = async (
  threadId: string,
  assistantId: string,
  payload: { input?: unknown; command?: { resume: unknown }; checkpoint?: Checkpoint | null },
): Promise<Shown> => {
  const shown: Shown = { messages: new Map(), events: [] };
  const { thread_id: _, ...checkpoint } = payload.checkpoint ?? ({} as Partial<Checkpoint>);
  for await (const { event, data } of client.runs.stream(threadId, assistantId, {
    input: (payload.input ?? {}) as Record<string, unknown>,
    command: payload.command,
    checkpoint: payload.checkpoint ? { ...checkpoint, checkpoint_map: null } : undefined,
    streamMode: ["values", "messages-tuple", "custom"],
    streamSubgraphs: true,
    streamResumable: true,
    onDisconnect: "continue",
    onRunCreated: ({ run_id }: { run_id: string }) => (shown.runId = run_id),
  } as never) as AsyncIterable<{ event: string; data: unknown }>) {
    shown.events.push(event);
    if (event === "error") throw new Error(JSON.stringify(data));
    if (event === "values") shown.values = { ...shown.values, ...(data as Values) };
    if (event === "messages" || event.startsWith("messages|")) {
      const [chunk] = data as [{ id?: string; type: string; content: string }];
      if (chunk.id === undefined) throw new Error("The hook drops messages without an id.");
      shown.messages.set(chunk.id, (shown.messages.get(chunk.id) ?? "") + chunk.content);
    }
  }
  return shown;
};
const history = (threadId: string): Promise<ThreadState<Values>[]> =>
  client.threads.getHistory<Values>(threadId, { limit: 10 });

describe("useStream", () => {
  test("shows tokens live, and the same messages in the history at the end", async () => {
    const { thread_id: threadId } = await client.threads.create({ metadata: { from: "hook" } });
    expect(await history(threadId)).toEqual([]);
    const shown = await submit(threadId, "tokens", {
      input: { messages: [{ type: "human", content: "go", id: "mine" }], tokens: 30 },
    });
    const [head] = await history(threadId);
    expect(head?.values).toEqual(shown.values);
    const answer = head?.values.messages.at(-1);
    expect(shown.messages.get(answer?.id ?? "")).toBe(answer?.content);
    expect(head?.values.messages[0]).toMatchObject({ id: "mine", type: "human" });
    const [found] = await client.threads.search({ metadata: { graph_id: "tokens", from: "hook" } });
    expect(found).toMatchObject({ thread_id: threadId, values: { messages: head?.values.messages } });
  });

  test("draws the tree of branches by checkpoint and parent_checkpoint", async () => {
    const { thread_id: threadId } = await client.threads.create();
    const say = (content: string) => ({ messages: [{ type: "human", content }] });
    await submit(threadId, "two-step", { input: say("one") });
    const [head] = await history(threadId);
    await submit(threadId, "two-step", { input: say("two"), checkpoint: head?.checkpoint ?? null });
    // The person edits "two", which makes a branch from the checkpoint before it.
    const branch = await submit(threadId, "two-step", {
      input: say("edited"),
      checkpoint: head?.checkpoint ?? null,
    });
    expect(branch.values?.messages.map(({ content }) => content)).toEqual([
      "one",
      "first",
      "second",
      "edited",
      "first",
      "second",
    ]);
    const states = await client.threads.getHistory<Values>(threadId, { limit: 100 });
    const ids = new Set(states.map(({ checkpoint }) => checkpoint.checkpoint_id));
    const roots = states.filter(({ parent_checkpoint }) => !parent_checkpoint);
    expect(roots).toHaveLength(1);
    for (const { parent_checkpoint: parent } of states)
      if (parent) expect(ids).toContain(parent.checkpoint_id);
    const children = states.filter(
      ({ parent_checkpoint: parent }) => parent?.checkpoint_id === head?.checkpoint.checkpoint_id,
    );
    expect(children).toHaveLength(2);
  });

  test("shows an interrupt, and its answer continues the thread", async () => {
    const { thread_id: threadId } = await client.threads.create();
    const asked = await submit(threadId, "approval", {
      input: { messages: [{ type: "human", content: "a refund" }] },
    });
    expect(asked.values?.__interrupt__).toMatchObject([
      { id: expect.any(String), value: { question: "Send this draft?" } },
    ]);
    const [state] = await history(threadId);
    expect(state?.next).toEqual(["review"]);
    expect(state?.tasks.at(-1)?.interrupts).toMatchObject([{ value: { question: "Send this draft?" } }]);
    const answered = await submit(threadId, "approval", { command: { resume: { decision: "approve" } } });
    expect(answered.values).toMatchObject({ status: "sent" });
    expect((await client.threads.get(threadId)).status).toBe("idle");
  });

  test("rejoins a running run after a reload, from its first event, and can stop it", async () => {
    const { thread_id: threadId } = await client.threads.create();
    const input = { messages: [], milliseconds: 600_000 };
    const leave = new AbortController();
    let runId = "";
    const first = (async () => {
      for await (const _ of client.runs.stream(threadId, "sleep", {
        input,
        streamMode: ["values", "custom"],
        streamResumable: true,
        onDisconnect: "continue",
        signal: leave.signal,
        onRunCreated: (run) => (runId = run.run_id),
      }));
    })();
    await expect.poll(() => runId).not.toBe("");
    leave.abort();
    await first.catch(() => undefined);
    const ids: (string | undefined)[] = [];
    for await (const { id } of client.runs.joinStream(threadId, runId, { lastEventId: "-1" })) {
      ids.push(id);
      if (ids.length === 5) await client.runs.cancel(threadId, runId, true);
    }
    expect(ids.slice(0, 5)).toEqual(["0", "1", "2", "3", "4"]);
    expect(await client.runs.get(threadId, runId)).toMatchObject({ status: "interrupted" });
  });
});
