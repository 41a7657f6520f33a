import { TaskState } from "@a2a-js/sdk";
import { describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";
import { clientOf, DIALECTS, errorOf, saying, sent, text } from "./clients.ts";

/** Messages that are sent again, or at the same time as others. */

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

describe.each(DIALECTS)("over %s", (dialect) => {
  const client = (assistantId: string) => clientOf(server, assistantId, dialect);

  test("a repeated message starts nothing new", async () => {
    const contextId = newId();
    const twoStep = await client("two-step");
    const message = saying([text("once")], { contextId, messageId: newId() });
    const first = await sent(twoStep, message);
    const again = await sent(twoStep, message);
    expect(again.id).toBe(first.id);
    expect(again.artifacts).toEqual(first.artifacts);
    expect(await api.runs(contextId)).toHaveLength(1);
  });

  test("the same message several times at once starts one run", async () => {
    const contextId = newId();
    const twoStep = await client("two-step");
    const message = saying([text("once")], { contextId, messageId: newId() });
    const tasks = await Promise.all(Array.from({ length: 8 }, () => sent(twoStep, message)));
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(1);
    expect(await api.runs(contextId)).toHaveLength(1);
  });

  test("different messages at once to one context start a task each", async () => {
    const contextId = newId();
    const twoStep = await client("two-step");
    const tasks = await Promise.all(
      Array.from({ length: 12 }, () => sent(twoStep, saying([text("one of many")], { contextId }))),
    );
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(12);
    expect(await query(server, "select from threadloom.runs where thread_id = $1", [contextId])).toHaveLength(
      12,
    );
  });

  test("a message may be forwarded to another assistant in the same context", async () => {
    const contextId = newId();
    const message = saying([text("hello")], { contextId, messageId: newId() });
    const first = await sent(await client("two-step"), message);
    const second = await sent(await client("approval"), message);
    expect(second.id).not.toBe(first.id);
    expect(second.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    expect(await api.runs(contextId)).toHaveLength(2);
  });

  test("a repeated answer to an interrupt resumes once", async () => {
    const approval = await client("approval");
    const asked = await sent(approval, saying([text("a refund")]));
    const answer = saying([text("approve")], { taskId: asked.id, messageId: newId() });
    await sent(approval, answer);
    expect((await sent(approval, answer)).status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(await api.runs(asked.contextId)).toHaveLength(2);
  });

  test("two answers at once: one resumes the task, the other is refused", async () => {
    const approval = await client("approval");
    const asked = await sent(approval, saying([text("a refund")]));
    const answers = await Promise.all(
      ["approve", "reject"].map((answer) =>
        errorOf(approval.sendMessage(saying([text(answer)], { taskId: asked.id }))),
      ),
    );
    expect(answers.filter((error) => error === undefined)).toHaveLength(1);
    expect(await api.runs(asked.contextId)).toHaveLength(2);
  });
});
