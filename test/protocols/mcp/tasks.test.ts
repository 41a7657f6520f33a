import { describe, expect, it } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { saying } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { onTwoServers } from "../../helpers/servers.ts";
import { ask, WITH_FORMS, WITH_TASKS, type Message } from "./clients.ts";

let server: TestServer;
let replica: TestServer;
onTwoServers((opened) => ({ server, replica } = opened));

interface TaskRecord {
  taskId: string;
  status: string;
  inputRequests?: Record<string, { params: { message: string } }>;
  result?: Record<string, unknown>;
}

const BOTH = { ...WITH_TASKS, ...WITH_FORMS };

const send = async (method: string, params: Record<string, unknown>, capabilities: object = BOTH) =>
  (await ask(server.url, method, params, { capabilities })).message;
const aTask = async (name: string, given: object): Promise<TaskRecord> =>
  (await send("tools/call", { name, arguments: given })).result as never;
/** At the other server: any may answer. */
const get = async (taskId: string, capabilities: object = BOTH): Promise<TaskRecord> =>
  (await ask(replica.url, "tasks/get", { taskId }, { capabilities })).message.result as never;
const untilTaskIs = async (taskId: string, status: string): Promise<TaskRecord> =>
  await eventually(`the task is ${status}`, async () => {
    const task = await get(taskId);
    return task.status === status && task;
  });

/** Through the API. */
const startRun = async (threadId: string, label: string): Promise<{ run_id: string }> => {
  const { body } = await server.client
    .post(`/threads/${threadId}/runs`)
    .send({ assistant_id: "gate", input: { label }, if_not_exists: "create" });
  return body as { run_id: string };
};

describe("a client that declares tasks", () => {
  it("gets a handle at once, and the result later", async () => {
    const label = newId();
    const created = await aTask("gate", { label });
    expect(created).toEqual(
      expect.objectContaining({
        resultType: "task",
        status: "working",
        ttlMs: null,
        pollIntervalMs: 1_000,
      }),
    );
    await eventually("the run waits", () => isAtGate(label));
    expect(await get(created.taskId)).toMatchObject({
      resultType: "complete",
      taskId: created.taskId,
      status: "working",
      createdAt: (created as never as { createdAt: string }).createdAt,
    });
    openGate(label);
    const { result } = await untilTaskIs(created.taskId, "completed");
    expect(result).toMatchObject({ resultType: "complete", structuredContent: { label, done: [label] } });
    expect(result).not.toHaveProperty("isError");
  });

  it("gets the result of a short run at once", async () => {
    const short = (await aTask("two-step", saying("hi"))) as never as Record<string, unknown>;
    expect(short).toMatchObject({ resultType: "complete", content: [{ text: "second" }] });
    expect(short).not.toHaveProperty("taskId");
  });

  it("gets the error of a graph as the result of a completed task", async () => {
    const { _meta: place } = (await aTask("failing", { reason: "out of tea" })) as never as {
      _meta: { thread_id: string; run_id: string };
    };
    expect(await get(`${place.thread_id}:${place.run_id}`)).toMatchObject({
      status: "completed",
      result: { isError: true, content: [{ text: "Error: out of tea" }] },
    });
  });

  it("answers the questions of the graph, each under a key of its own", async () => {
    const { taskId } = await aTask("approval", saying("a refund"));
    const first = await untilTaskIs(taskId, "input_required");
    const [key] = Object.keys(first.inputRequests!);
    const answer = (content: string) => ({ action: "accept", content: { answer: content } });
    const acknowledged = await send("tasks/update", { taskId, inputResponses: { [key!]: answer("[]") } });
    expect(acknowledged.result).toMatchObject({ resultType: "complete" });
    const second = await eventually("it asks again", async () => {
      const task = await get(taskId);
      return task.status === "input_required" && !(key! in task.inputRequests!) && task;
    });
    // The first question no longer waits.
    await send("tasks/update", { taskId, inputResponses: { [key!]: answer("reject") } });
    await send("tasks/update", {
      taskId,
      inputResponses: { [Object.keys(second.inputRequests!)[0]!]: answer("approve") },
    });
    const { result } = await untilTaskIs(taskId, "completed");
    expect(result).toMatchObject({ structuredContent: { status: "sent" } });
  });

  it("but has no forms, reads the question as the result", async () => {
    const { taskId } = await aTask("approval", saying("a refund"));
    const { result } = await eventually("the run has ended", async () => {
      const task = await get(taskId, WITH_TASKS);
      return task.status === "completed" && task;
    });
    expect(JSON.stringify(result)).toContain("Send this draft?");
  });

  it("cancels a task, and leaves an ended one as it is", async () => {
    const label = newId();
    const { taskId } = await aTask("gate", { label });
    await eventually("the run waits", () => isAtGate(label));
    expect((await send("tasks/cancel", { taskId })).result).toMatchObject({ resultType: "complete" });
    await untilTaskIs(taskId, "cancelled");
    await send("tasks/cancel", { taskId });
    expect((await get(taskId)).status).toBe("cancelled");
  });
});

describe("a task that waits for an answer", () => {
  const aQuestion = async (): Promise<{ taskId: string; inputResponses: object }> => {
    const { taskId } = await aTask("approval", saying("a refund"));
    const { inputRequests } = await untilTaskIs(taskId, "input_required");
    const answer = { action: "accept", content: { answer: "approve" } };
    return { taskId, inputResponses: { [Object.keys(inputRequests!)[0]!]: answer } };
  };

  it("is cancelled, and takes no answer any more", async () => {
    const { taskId, inputResponses } = await aQuestion();
    expect((await send("tasks/cancel", { taskId })).result).toMatchObject({ resultType: "complete" });
    expect((await get(taskId)).status).toBe("cancelled");
    await send("tasks/update", { taskId, inputResponses });
    expect((await get(taskId)).status).toBe("cancelled");
  });

  it("is cancelled or answered, if both are asked for at once", async () => {
    const { taskId, inputResponses } = await aQuestion();
    const both = [send("tasks/update", { taskId, inputResponses }), send("tasks/cancel", { taskId })];
    for (const { error } of await Promise.all(both)) expect(error).toBeUndefined();
    await eventually("the task has ended", async () =>
      ["cancelled", "completed"].includes((await get(taskId)).status),
    );
  });

  it("is a completed one for a client without forms, so it stays as it is", async () => {
    const { taskId } = await aQuestion();
    await send("tasks/cancel", { taskId }, WITH_TASKS);
    expect((await get(taskId)).status).toBe("input_required");
  });
});

describe("the methods of tasks", () => {
  const methods: [string, object][] = [
    ["tasks/get", {}],
    ["tasks/update", { inputResponses: {} }],
    ["tasks/cancel", {}],
  ];

  it.each(methods)("%s needs the capability", async (method, params) => {
    const { status, message } = await ask(server.url, method, { taskId: `${newId()}:${newId()}`, ...params });
    expect([status, message.error]).toEqual([
      400,
      expect.objectContaining({
        code: -32_021,
        data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
      }),
    ]);
  });

  it.each(methods)("%s does not find runs that no call of MCP created", async (method, params) => {
    const [label, threadId] = [newId(), newId()];
    const { run_id: runId } = await startRun(threadId, label);
    await eventually("the run waits", () => isAtGate(label));
    const { error } = await send(method, { taskId: `${threadId}:${runId}`, ...params });
    expect(error).toMatchObject({ code: -32_602, message: "There is no such task." });
    expect(isAtGate(label)).toBe(true);
    openGate(label);
  });

  it.each(methods)("%s refuses an unknown task", async (method, params) => {
    for (const taskId of [`${newId()}:${newId()}`, "constructor", ""]) {
      const { error }: Message = await send(method, { taskId, ...params });
      expect(error?.code).toBe(-32_602);
    }
  });
});
