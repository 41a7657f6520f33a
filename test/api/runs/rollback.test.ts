import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { openStream } from "../../helpers/server-sent-events.ts";

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url)),
  });
  api = apiOf(server);
});
afterAll(() => server.close());

describe("the rollback of a run that answered a question", () => {
  test.each(["slow", "slow later"])(
    "removes the answer: the question waits again, for another one (%s)",
    async (answer) => {
      const threadId = await api.aThread();
      await api.aFinishedRun(threadId, { assistant_id: "question", input: {} });
      const before = {
        state: await api.state(threadId),
        history: await api.history(threadId),
        thread: await api.thread(threadId),
      };
      expect(before.state.next).toEqual(["ask"]);

      const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
        body: { assistant_id: "question", command: { resume: answer }, stream_mode: "custom" },
      });
      await stream.until(({ event }) => event === "custom");
      const [run] = await api.runs(threadId);
      await api.cancel(threadId, run?.run_id ?? "", "wait=1&action=rollback");

      expect(await api.state(threadId)).toEqual(before.state);
      expect(await api.history(threadId)).toEqual(before.history);
      expect(await api.thread(threadId)).toMatchObject({
        status: "interrupted",
        interrupts: before.thread.interrupts,
      });
      const result = await api.aFinishedRun(threadId, {
        assistant_id: "question",
        command: { resume: "quick" },
      });
      expect(result["answers"]).toEqual(["quick"]);
    },
  );
});

describe("the rollback of a run that continued after a static interrupt", () => {
  test("leaves no change at the checkpoint that it started from", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "hesitant", input: {}, interrupt_before: ["one"] });
    const writes = () =>
      query(
        server,
        "select to_jsonb(w) as row from threadloom.checkpoint_writes w where thread_id = $1 order by task_id",
        [threadId],
      );
    const before = { state: await api.state(threadId), writes: await writes() };
    expect(before.state.next).toEqual(["one"]);

    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "hesitant", stream_mode: "custom" },
    });
    await stream.until(({ event }) => event === "custom");
    const [run] = await api.runs(threadId);
    await api.cancel(threadId, run?.run_id ?? "", "wait=1&action=rollback");
    expect(await api.state(threadId)).toEqual(before.state);
    expect(await writes()).toEqual(before.writes);
  });
});

describe("the rollback of a run restores the thread's", () => {
  const graphOf = async (threadId: string) => {
    const { metadata } = await api.thread(threadId);
    return metadata["graph_id"];
  };
  /** A run that waits for longer than the test. */
  const aRun = async (threadId: string, graphId: string, more: object = {}): Promise<string> =>
    (await api.aRun(threadId, { assistant_id: graphId, input: {}, after_seconds: 600, ...more })).run_id;
  const rollBack = (threadId: string, runId: string) => api.cancel(threadId, runId, "wait=1&action=rollback");

  test("former graph and assistant, or none", async () => {
    const threadId = await api.aThread({ metadata: { owner: "me" } });
    await rollBack(threadId, await aRun(threadId, "question"));
    expect((await api.thread(threadId)).metadata).toEqual({ owner: "me" });

    const first = await aRun(threadId, "question");
    const { metadata } = await api.thread(threadId);
    await rollBack(threadId, await aRun(threadId, "hesitant"));
    expect((await api.thread(threadId)).metadata).toEqual(metadata);
    await rollBack(threadId, first);
    expect((await api.thread(threadId)).metadata).toEqual({ owner: "me" });
  });

  test("values also after the run was executed", async () => {
    const threadId = await api.aThread({ metadata: { graph_id: "mirror" } });
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "hesitant", input: {}, stream_mode: "custom" },
    });
    await stream.until(({ event }) => event === "custom");
    const [run] = await api.runs(threadId);
    expect(await graphOf(threadId)).toBe("hesitant");
    await rollBack(threadId, run?.run_id ?? "");
    expect((await api.thread(threadId)).metadata).toEqual({ graph_id: "mirror" });
  });

  test("values in whatever order several are rolled back", async () => {
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 0, 2],
    ]) {
      const threadId = await api.aThread({ metadata: { graph_id: "mirror" } });
      const runs = [
        await aRun(threadId, "question"),
        await aRun(threadId, "hesitant"),
        await aRun(threadId, "hesitant"),
      ];
      for (const index of order) await rollBack(threadId, runs[index] ?? "");
      expect((await api.thread(threadId)).metadata).toEqual({ graph_id: "mirror" });
    }
  });

  test("values, but not over a later run's, or over a user's later change", async () => {
    const threadId = await api.aThread();
    const first = await aRun(threadId, "question");
    const second = await aRun(threadId, "hesitant");
    await rollBack(threadId, first);
    expect(await graphOf(threadId)).toBe("hesitant");
    await api.patch(`/threads/${threadId}`, { metadata: { graph_id: "mirror" } });
    await rollBack(threadId, second);
    expect(await graphOf(threadId)).toBe("mirror");
  });

  test("values if another run replaces them all", async () => {
    const threadId = await api.aThread({ metadata: { graph_id: "mirror" } });
    await aRun(threadId, "question");
    await aRun(threadId, "hesitant");
    const last = await aRun(threadId, "question", { multitask_strategy: "rollback" });
    expect(await graphOf(threadId)).toBe("question");
    await rollBack(threadId, last);
    expect((await api.thread(threadId)).metadata).toEqual({ graph_id: "mirror" });
  });
});
