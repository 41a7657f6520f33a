import pg from "pg";
import { describe, expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";
import { waitingStatements } from "../../helpers/locks.ts";

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const say = (content: string) => ({ messages: [{ role: "user", content }] });

const waiting = async (): Promise<number> => {
  const texts = await waitingStatements((text) => query(server, text));
  return texts.filter((text) => text.includes("threads")).length;
};

describe("the first run of a thread", () => {
  test("starts from an update of the state that was stored while the run was being created", async () => {
    const threadId = await api.aThread({ metadata: { graph_id: "two-step" } });
    const holder = new pg.Client({ connectionString: server.connectionString });
    await holder.connect();
    try {
      // Both statements wait for the thread's row, the update first. The creation of the run then continues with a snapshot from before the
      // update.
      await holder.query("begin");
      await holder.query("select 1 from threadloom.threads where thread_id = $1 for update", [threadId]);
      const updated = api.post(`/threads/${threadId}/state`, { values: say("updated") });
      await eventually("the update waits for the thread", async () => (await waiting()) === 1);
      const ran = api.post<{ messages: { content: string }[] }>(`/threads/${threadId}/runs/wait`, {
        assistant_id: "two-step",
        input: say("asked"),
      });
      await eventually("the run waits behind it", async () => (await waiting()) === 2);
      await holder.query("commit");

      expect((await updated).status).toBe(200);
      const { messages } = (await ran).body;
      expect(messages.slice(0, 2).map(({ content }) => content)).toEqual(["updated", "asked"]);
    } finally {
      await holder.end();
    }
  });
});

test("a run that waits behind another is not delayed forever by a younger one that was due meanwhile", async () => {
  const threadId = await api.aThread();
  const asleep = { assistant_id: "sleep", input: { ...say("first"), milliseconds: 600_000 } };
  const first = await api.aRun(threadId, asleep);
  await api.untilRunIs(threadId, first.run_id, "running");
  const second = await api.aRun(threadId, { assistant_id: "two-step", input: say("second") });
  const third = await api.aRun(threadId, {
    assistant_id: "two-step",
    input: say("third"),
    after_seconds: 0.001,
  });
  await api.cancel(threadId, first.run_id);

  await api.untilRunIs(threadId, second.run_id, "success");
  const result = await api.join(threadId, third.run_id);
  const asked = (result.messages ?? []).filter(({ type }) => type === "human");
  expect(asked.map(({ content }) => content)).toEqual(["first", "second", "third"]);
  expect(await api.thread(threadId)).toMatchObject({ status: "idle" });
});
