import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, saying, type Api, type Result, type ThreadRecord } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { namesOf, readStream } from "../../helpers/server-sent-events.ts";

const ASK = { assistant_id: "approval", input: saying("a refund") };
const APPROVED = { decision: "approve" };
const OTHER_ID = "0123456789abcdef".repeat(2);

const strictly = (resume: unknown, more: object = {}) => ({
  assistant_id: "approval",
  command: { resume },
  strict_resume: true,
  ...more,
});

const anAskingThread = async (api: Api): Promise<{ threadId: string; id: string }> => {
  const threadId = await api.aThread();
  const asked = await api.aFinishedRun(threadId, ASK);
  return { threadId, id: asked.__interrupt__?.[0]?.id ?? "" };
};

/** The thread's fields except the times and the version of its row. */
const standingOf = async (api: Api, threadId: string): Promise<Partial<ThreadRecord>> => {
  const { updated_at: _, ...standing } = await api.thread(threadId);
  return standing;
};

describe.each([
  ["in the server's own process", 0],
  ["in a graph process", 1],
])("a strict resume, executed %s,", (_where, graphProcesses) => {
  let server: TestServer;
  let api: Api;
  beforeAll(async () => {
    server = await startTestServer({ graphProcesses });
    api = apiOf(server);
  });
  afterAll(() => server.close());

  const refused = async (
    threadId: string,
    resume: unknown,
    more: object = {},
  ): Promise<Result["__error__"]> => (await api.aFinishedRun(threadId, strictly(resume, more))).__error__;

  test("of the pending interrupt continues", async () => {
    const { threadId, id } = await anAskingThread(api);
    expect(await api.aFinishedRun(threadId, strictly({ [id]: APPROVED }))).toMatchObject({ status: "sent" });
    const another = await anAskingThread(api);
    expect(await api.aFinishedRun(another.threadId, strictly(APPROVED))).toMatchObject({ status: "sent" });
  });

  test("of another one fails and leaves the thread waiting as it was", async () => {
    const { threadId, id } = await anAskingThread(api);
    const before = await standingOf(api, threadId);
    const refusal = {
      error: "UnknownInterruptError",
      message: `Interrupt '${OTHER_ID}' (and 1 more) does not wait for an answer.`,
      reason: "no_such_interrupt",
      interrupt_ids: [OTHER_ID, "f".repeat(32)],
      pending_ids: [id],
    };
    const answers = { [OTHER_ID]: APPROVED, [id]: APPROVED, ["f".repeat(32)]: APPROVED };
    expect(await refused(threadId, answers)).toEqual(refusal);
    expect(await standingOf(api, threadId)).toEqual(before);
    expect((await api.runs(threadId))[0]).toMatchObject({ status: "error", error: refusal });
    expect(await api.aFinishedRun(threadId, strictly({ [id]: APPROVED }))).toMatchObject({ status: "sent" });
  });
});

describe("a strict resume", () => {
  let server: TestServer;
  let api: Api;
  beforeAll(async () => {
    server = await startTestServer();
    api = apiOf(server);
  });
  afterAll(() => server.close());

  test("is refused to the second of two that answer the same question at once", async () => {
    const { threadId, id } = await anAskingThread(api);
    const results = await Promise.all([
      api.aFinishedRun(threadId, strictly({ [id]: APPROVED })),
      api.aFinishedRun(threadId, strictly({ [id]: APPROVED })),
    ]);
    expect(results.filter((result) => result.status === "sent")).toHaveLength(1);
    expect(results.find((result) => result.__error__)?.__error__).toMatchObject({
      error: "UnknownInterruptError",
      interrupt_ids: [id],
      pending_ids: [],
    });
    expect(await api.thread(threadId)).toMatchObject({ status: "idle", interrupts: {} });
  });

  test("sends the reason to its stream, and executes no node", async () => {
    const { threadId } = await anAskingThread(api);
    const before = await api.history(threadId);
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: strictly({ [OTHER_ID]: APPROVED }, { stream_mode: ["values", "updates", "debug"] }),
    });
    expect(namesOf(events)).toEqual(["metadata", "error"]);
    expect(events.at(-1)?.data).toMatchObject({ error: "UnknownInterruptError", interrupt_ids: [OTHER_ID] });
    expect(await api.history(threadId)).toEqual(before);
  });

  test("on a thread without an interrupt is refused, whatever it answers", async () => {
    const threadId = await api.aThread();
    for (const answer of [APPROVED, false, { [OTHER_ID]: APPROVED }]) {
      const { __error__: error } = await api.aFinishedRun(threadId, strictly(answer));
      expect(error).toMatchObject({ error: "UnknownInterruptError", pending_ids: [] });
    }
    expect(await api.thread(threadId)).toMatchObject({ status: "idle", interrupts: {} });
  });

  test("leaves a thread whose last run failed in its error", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "failing", input: { reason: "out of luck" } });
    const before = await standingOf(api, threadId);
    expect(before).toMatchObject({ status: "error", error: { message: "out of luck" } });
    await api.aFinishedRun(threadId, { ...strictly(APPROVED), assistant_id: "failing" });
    expect(await standingOf(api, threadId)).toEqual({
      ...before,
      metadata: expect.objectContaining({ graph_id: "failing" }),
    });
  });

  test("from an earlier checkpoint answers the interrupt of that checkpoint", async () => {
    const { threadId, id } = await anAskingThread(api);
    const checkpointId = (await api.state(threadId)).checkpoint?.checkpoint_id;
    await api.aFinishedRun(threadId, strictly({ [id]: { decision: "reject" } }));
    const again = await api.aFinishedRun(
      threadId,
      strictly({ [id]: APPROVED }, { checkpoint_id: checkpointId }),
    );
    // LangGraph decides the result there: it uses the first answer that the checkpoint received.
    expect(again).not.toHaveProperty("__error__");
    expect(again).toHaveProperty("status");
  });

  test("is off by default: other answers are ignored", async () => {
    const { threadId, id } = await anAskingThread(api);
    const result = await api.aFinishedRun(threadId, {
      ...strictly({ [OTHER_ID]: APPROVED }),
      strict_resume: false,
    });
    expect(result).toMatchObject({ __interrupt__: [{ id }] });
  });
});
