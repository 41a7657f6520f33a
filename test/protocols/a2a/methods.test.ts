import { TaskState } from "@a2a-js/sdk";
import { describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { onServer } from "../../helpers/servers.ts";
import {
  artifactOf,
  assembled,
  clientOf,
  data,
  DIALECTS,
  errorOf,
  eventsOf,
  saying,
  sent,
  statusText,
  text,
} from "./clients.ts";

/** Every method of the protocol with the official client, in each dialect. */

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const place = { tenant: "" };
const noHistory = { historyLength: undefined };

describe.each(DIALECTS)("over %s", (dialect) => {
  const client = (assistantId: string) => clientOf(server, assistantId, dialect);
  const get = async (assistantId: string, id: string, historyLength?: number) =>
    await (await client(assistantId)).getTask({ ...place, id, historyLength });
  const atGate = async (label: string) => {
    const gate = await client("gate");
    const task = await sent(gate, saying([data({ label })], { returnImmediately: true }));
    await eventually(`${label} is at its gate`, () => isAtGate(label));
    return { gate, task };
  };

  test("a message is answered with the completed task: the agent's text and the history", async () => {
    const task = await sent(await client("two-step"), saying([text("hello")]));
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(artifactOf(task)).toBe("second");
    expect(task.history.map(({ role, parts }) => [role, parts.length])).toEqual([
      [1, 1],
      [2, 1],
      [2, 1],
    ]);
    const [threadId = "", runId = ""] = task.id.split(":");
    expect(task.contextId).toBe(threadId);
    expect((await api.run(threadId, runId)).metadata).toMatchObject({ origin: "a2a" });
  });

  test("a data part is the input of a graph without messages, and its values are the artifact", async () => {
    const { gate, task } = await atGate(`data ${dialect}`);
    openGate(`data ${dialect}`);
    const ended = await eventually("the task has ended", async () => {
      const found = await gate.getTask({ ...place, ...noHistory, id: task.id });
      return found.status?.state === TaskState.TASK_STATE_COMPLETED ? found : undefined;
    });
    expect(ended.artifacts[0]?.parts[0]?.content?.value).toMatchObject({ done: [`data ${dialect}`] });
  });

  test("a client that does not want to wait gets the task while it works", async () => {
    const label = `at once ${dialect}`;
    const { task } = await atGate(label);
    expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(task.status?.state);
    expect((await get("gate", task.id)).status?.state).toBe(TaskState.TASK_STATE_WORKING);
    openGate(label);
  });

  test("an interrupt asks for input, and a text part answers it under the same task", async () => {
    const approval = await client("approval");
    const asked = await sent(approval, saying([text("a refund")]));
    expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    expect(statusText(asked)).toContain("Send this draft?");
    expect((await get("approval", asked.id)).status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const answered = await sent(approval, saying([text("approve")], { taskId: asked.id }));
    expect(answered.id).toBe(asked.id);
    expect(answered.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(artifactOf(answered)).toContain('Sent: Dear customer, about your request "a refund"');
    const found = await get("approval", asked.id);
    expect(found.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(found.history).toEqual(answered.history);
    expect(await errorOf(approval.sendMessage(saying([text("more")], { taskId: asked.id })))).toBe(
      "UnsupportedOperationError",
    );
  });

  test("a data part answers an interrupt, too", async () => {
    const approval = await client("approval");
    const asked = await sent(approval, saying([text("a refund")]));
    const answer = saying([data({ decision: "edit", text: "No." })], {
      taskId: asked.id,
      contextId: asked.contextId,
    });
    expect(artifactOf(await sent(approval, answer))).toBe("Sent: No.");
  });

  test("a stream begins with the task, brings each token, and ends with the state", async () => {
    const events = await eventsOf(
      (await client("tokens")).sendMessageStream(saying([text("go"), data({ tokens: 20 })])),
    );
    const [task, working, ...rest] = events;
    expect(task?.$case).toBe("task");
    expect(working).toMatchObject({ value: { status: { state: TaskState.TASK_STATE_WORKING } } });
    expect(rest.at(-1)).toMatchObject({
      $case: "statusUpdate",
      value: { status: { state: TaskState.TASK_STATE_COMPLETED } },
    });
    expect(rest.filter((event) => event?.$case === "artifactUpdate").length).toBe(21);
    const whole = Array.from({ length: 20 }, (_, index) => `t${index} `).join("");
    expect(assembled(events)).toBe(whole);
    expect(artifactOf(await get("tokens", task?.$case === "task" ? task.value.id : ""))).toBe(whole);
  });

  test("a client that subscribes again gets the same events in the same order", async () => {
    const label = `again ${dialect}`;
    const gate = await client("gate");
    const stream = gate.sendMessageStream(saying([data({ label })]));
    const first = (await stream.next()).value?.payload;
    const id = first?.$case === "task" ? first.value.id : "";
    await eventually(`${label} is at its gate`, () => isAtGate(label));
    const others = [1, 2].map(() => gate.resubscribeTask({ ...place, id }));
    for (const other of others)
      expect((await other.next()).value?.payload).toMatchObject({ $case: "task", value: { id } });
    openGate(label);
    const rest = await eventsOf(stream);
    for (const other of others) expect(await eventsOf(other)).toEqual(rest);
    expect(rest.at(-1)).toMatchObject({ value: { status: { state: TaskState.TASK_STATE_COMPLETED } } });
    expect(await errorOf(eventsOf(gate.resubscribeTask({ ...place, id })))).toBe("UnsupportedOperationError");
  });

  test("a task of a message that is waited for may be followed, too", async () => {
    const label = `waited ${dialect}`;
    const contextId = newId();
    const gate = await client("gate");
    const answer = sent(gate, saying([data({ label })], { contextId }));
    await eventually(`${label} is at its gate`, () => isAtGate(label));
    const [run] = await api.runs(contextId);
    const stream = gate.resubscribeTask({ ...place, id: `${contextId}:${run?.run_id}` });
    expect((await stream.next()).value?.payload).toMatchObject({ $case: "task" });
    openGate(label);
    const events = await eventsOf(stream);
    expect(events.map((event) => event?.$case)).toEqual(["artifactUpdate", "statusUpdate"]);
    expect(assembled(events)).toBe(artifactOf(await answer));
  });

  test("a cancelled task stops its graph", async () => {
    const label = `cancel ${dialect}`;
    const { gate, task } = await atGate(label);
    const cancelled = await gate.cancelTask({ ...place, id: task.id, metadata: undefined });
    expect(cancelled).toMatchObject({ id: task.id, status: { state: TaskState.TASK_STATE_CANCELED } });
    expect(isAtGate(label)).toBe(false);
    expect((await get("gate", task.id)).status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    expect(await errorOf(gate.cancelTask({ ...place, id: task.id, metadata: undefined }))).toBe(
      "TaskNotCancelableError",
    );
  });

  test("a task that waits for input is cancelled, takes no answer, and leaves its context usable", async () => {
    const approval = await client("approval");
    const asked = await sent(approval, saying([text("a refund")]));
    const cancelled = await approval.cancelTask({ ...place, id: asked.id, metadata: undefined });
    expect(cancelled).toMatchObject({ id: asked.id, status: { state: TaskState.TASK_STATE_CANCELED } });
    expect((await get("approval", asked.id)).status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    const answer = saying([text("approve")], { taskId: asked.id });
    expect(await errorOf(approval.sendMessage(answer))).toBe("UnsupportedOperationError");
    expect((await api.state(asked.contextId)).values["status"]).toBe("drafted");
    const next = await sent(approval, saying([text("a rebate")], { contextId: asked.contextId }));
    expect(next.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const done = await sent(approval, saying([text("approve")], { taskId: next.id }));
    expect(artifactOf(done)).toContain("a rebate");
  });

  test("an answer and a cancel at once: the task has the state that its client got", async () => {
    const approval = await client("approval");
    const asked = await sent(approval, saying([text("a refund")]));
    const answering = errorOf(approval.sendMessage(saying([text("approve")], { taskId: asked.id })));
    const cancelling = errorOf(approval.cancelTask({ ...place, id: asked.id, metadata: undefined }));
    const [, refusal] = await Promise.all([answering, cancelling]);
    expect((await get("approval", asked.id)).status?.state).toBe(
      refusal === undefined ? TaskState.TASK_STATE_CANCELED : TaskState.TASK_STATE_COMPLETED,
    );
  });

  test("a failed run is a failed task that says why", async () => {
    const task = await sent(
      await client("failing"),
      saying([text("go"), data({ reason: "The tank is empty." })]),
    );
    expect(task.status?.state).toBe(TaskState.TASK_STATE_FAILED);
    expect(statusText(task)).toBe("The tank is empty.");
    const found = await get("failing", task.id);
    expect(found.status?.state).toBe(TaskState.TASK_STATE_FAILED);
    expect(statusText(found)).toBe("The tank is empty.");
  });

  test("a context is a thread: a later task knows what was said before, and has a history of its own", async () => {
    const contextId = newId();
    const twoStep = await client("two-step");
    const one = await sent(twoStep, saying([text("one")], { contextId }));
    const two = await sent(twoStep, saying([text("two")], { contextId }));
    expect(one.contextId).toBe(contextId);
    expect(two.id).not.toBe(one.id);
    expect((await api.state(contextId)).values.messages).toHaveLength(6);
    expect(two.history.map((message) => message.parts[0]?.content?.value)).toEqual([
      "two",
      "first",
      "second",
    ]);
    expect(
      (await get("two-step", one.id)).history.map((message) => message.parts[0]?.content?.value),
    ).toEqual([...["one", "first", "second"]]);
    expect((await get("two-step", two.id, 1)).history).toHaveLength(1);
    expect((await get("two-step", two.id, 0)).history).toEqual([]);
  });

  test("wrong requests get the errors of the protocol, and store nothing", async () => {
    const twoStep = await client("two-step");
    const unknown = `${newId()}:${newId()}`;
    const done = await sent(twoStep, saying([text("one")]));
    expect(await errorOf(twoStep.getTask({ ...place, ...noHistory, id: unknown }))).toBe("TaskNotFoundError");
    expect(await errorOf(twoStep.getTask({ ...place, ...noHistory, id: "constructor" }))).toBe(
      "TaskNotFoundError",
    );
    expect(await errorOf((await client("gate")).getTask({ ...place, ...noHistory, id: done.id }))).toBe(
      "TaskNotFoundError",
    );
    expect(await errorOf(twoStep.sendMessage(saying([text("x")], { taskId: unknown })))).toBe(
      "TaskNotFoundError",
    );
    expect(await errorOf(twoStep.sendMessage(saying([text("x")], { contextId: "thread-1" })))).toBe(
      "RequestMalformedError",
    );
    expect(
      await errorOf(twoStep.sendMessage(saying([text("x")], { taskId: done.id, contextId: newId() }))),
    ).toBe("RequestMalformedError");
    const file = { content: { $case: "url", value: "http://x.test/a.pdf" } } as const;
    expect(await errorOf(twoStep.sendMessage(saying([{ ...text(""), ...file }])))).toBe(
      "ContentTypeNotSupportedError",
    );
    expect(await errorOf((await client("gate")).sendMessage(saying([text("no messages here")])))).toBe(
      "RequestMalformedError",
    );
    expect(await errorOf(twoStep.sendMessage(saying([])))).toBe("RequestMalformedError");
    expect(await api.runs(done.contextId)).toHaveLength(1);
  });

  test("the extended card is the card", async () => {
    const approval = await client("approval");
    const options = { serviceParameters: { "A2A-Version": approval.protocolVersion } };
    const card = await approval.transport.getExtendedAgentCard({ ...place }, options);
    expect(card.name).toBe("approval");
    expect(card.capabilities?.streaming).toBe(true);
  });
});
