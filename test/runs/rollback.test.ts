import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { query } from "../helpers/query.ts";
import { openStream } from "../helpers/server-sent-events.ts";

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
    "takes the answer back: the question stands again, for another one (%s)",
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

describe("the rollback of a run that went on behind a static interrupt", () => {
  test("leaves nothing at the checkpoint that it started from", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "hesitant", input: {}, interrupt_before: ["one"] });
    const writes = () =>
      query(
        server,
        "select to_jsonb(w) as row from checkpoint_writes w where thread_id = $1 order by task_id",
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
