import { randomUUID } from "node:crypto";
import { TaskState, type TaskPushNotificationConfig } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import type { Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { TEST_KEYS } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";
import { startReceiver, type Receiver } from "../webhooks/receiver.ts";
import { clientOf, data, DIALECTS, errorOf, eventsOf, saying, sent, text, type Dialect } from "./clients.ts";

/** Push notifications with the official client in each dialect, and a receiver. */

const LOOPBACK = { webhooks: { url: { disable_loopback: false } } };
let server: TestServer;
let api: Api;
let receiver: Receiver;
onServer({ projectKeys: LOOPBACK, bodyLimitBytes: 16_000_000 }, (opened) => ({ server, api } = opened));
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(() => receiver.close());

const place = { tenant: "" };
const configOf = (taskId: string, given: Partial<TaskPushNotificationConfig> = {}) => ({
  ...{ tenant: "", id: "", taskId, url: `${receiver.url}/hook`, token: "", authentication: undefined },
  ...given,
});
const optionsOf = (client: Client) => ({ serviceParameters: { "A2A-Version": client.protocolVersion } });
const set = (client: Client, config: TaskPushNotificationConfig) =>
  client.transport.createTaskPushNotificationConfig(config, optionsOf(client));
const list = async (client: Client, taskId: string): Promise<TaskPushNotificationConfig[]> => {
  const asked = { ...place, taskId, pageSize: 0, pageToken: "" };
  return (await client.transport.listTaskPushNotificationConfig(asked, optionsOf(client))).configs;
};

interface Sent {
  id: string;
  contextId: string;
  status: { state: string; message?: object };
  artifacts?: object[];
  kind?: string;
}
/** The tasks that the receiver got, in the form of the dialect. */
const tasksOf = (dialect: Dialect): Sent[] =>
  receiver.payloads().map((payload) => {
    if (dialect === "JSONRPC 0.3") expect(payload["kind"]).toBe("task");
    else expect(Object.keys(payload)).toEqual(["task"]);
    return (dialect === "JSONRPC 0.3" ? payload : payload["task"]) as Sent;
  });
const statesOf = (dialect: Dialect): string[] =>
  tasksOf(dialect).map(({ status }) =>
    status.state
      .replace("TASK_STATE_", "")
      .toLowerCase()
      .replace("input_required", "input-required")
      .replace("cancelled", "canceled"),
  );
const untilSent = (count: number) =>
  eventually(`${count} are received`, () => receiver.received.length >= count);
const rowsOf = (taskId: string) =>
  query<{ state: string; failures: number; last_status: number | null; last_error: string | null }>(
    server,
    "select state, failures, last_status, last_error from threadloom.deliveries where task_run_id = $1",
    [taskId.split(":")[1]],
  );
const untilState = (taskId: string, state: string) =>
  eventually(`the notification is ${state}`, async () =>
    (await rowsOf(taskId)).every((row) => row.state === state),
  );

/** A task that works until its gate opens. */
const atTheGate = async (label: string, dialect?: Dialect) => {
  const gate = await clientOf(server, "gate", dialect);
  const task = await sent(gate, saying([data({ label })], { returnImmediately: true }));
  await eventually(`${label} is at its gate`, () => isAtGate(label));
  return { gate, task };
};

describe.each(DIALECTS)("over %s", (dialect) => {
  const client = (assistantId: string) => clientOf(server, assistantId, dialect);
  const atGate = (label: string) => atTheGate(label, dialect);

  test("configurations are set, shown, listed, replaced and deleted, and the card names the capability", async () => {
    const { gate, task } = await atGate(`methods ${dialect}`);
    expect((await gate.getAgentCard()).capabilities?.pushNotifications).toBe(true);
    const authentication = { scheme: "Bearer", credentials: "the credentials" };
    const first = await set(gate, configOf(task.id, { id: "constructor", token: "one", authentication }));
    const second = await set(gate, configOf(task.id));
    expect(first).toEqual(configOf(task.id, { id: "constructor", token: "one", authentication }));
    expect(second.id).not.toBe("");
    const asked = { ...place, taskId: task.id, id: "constructor" };
    expect(await gate.transport.getTaskPushNotificationConfig(asked, optionsOf(gate))).toEqual(first);
    expect(await list(gate, task.id)).toEqual([first, second]);
    const replaced = await set(gate, configOf(task.id, { id: "constructor", token: "two" }));
    expect(await list(gate, task.id)).toEqual([replaced, second]);
    await gate.transport.deleteTaskPushNotificationConfig(asked, optionsOf(gate));
    await gate.transport.deleteTaskPushNotificationConfig(asked, optionsOf(gate));
    expect(await errorOf(gate.transport.getTaskPushNotificationConfig(asked, optionsOf(gate)))).toBe(
      "TaskNotFoundError",
    );
    expect(await list(gate, task.id)).toEqual([second]);
    const nowhere = `${task.contextId}:${newId()}`;
    expect(await errorOf(set(gate, configOf(nowhere)))).toBe("TaskNotFoundError");
    expect(await errorOf(list(gate, nowhere))).toBe("TaskNotFoundError");
    openGate(`methods ${dialect}`);
    await untilSent(1);
  });

  test("a task is sent at its end to all of its configurations, with token and credentials", async () => {
    const { gate, task } = await atGate(`end ${dialect}`);
    const authentication = { scheme: "Bearer", credentials: "c" };
    await set(gate, configOf(task.id, { id: "1", token: "the token" }));
    await set(gate, configOf(task.id, { id: "2", url: `${receiver.url}/other`, authentication }));
    expect(receiver.received).toEqual([]);
    openGate(`end ${dialect}`);
    await untilSent(2);
    await untilState(task.id, "delivered");
    expect(receiver.received).toHaveLength(2);
    const [hook, other] = receiver.received.toSorted((a, b) => a.path.localeCompare(b.path));
    expect(hook).toMatchObject({ path: "/hook", headers: { "x-a2a-notification-token": "the token" } });
    expect(hook?.headers.authorization).toBeUndefined();
    expect(other).toMatchObject({ path: "/other", headers: { authorization: "Bearer c" } });
    expect(other?.headers["x-a2a-notification-token"]).toBeUndefined();
    expect(hook?.headers["content-type"]).toBe(
      dialect === "JSONRPC 0.3" ? "application/json" : "application/a2a+json",
    );
    expect(statesOf(dialect)).toEqual(["completed", "completed"]);
    expect(tasksOf(dialect)[0]).toMatchObject({
      ...{ id: task.id, contextId: task.contextId },
      artifacts: [{ artifactId: "response" }],
    });
  });

  test("a message brings its configuration: the question is sent, and the end after the answer", async () => {
    const approval = await client("approval");
    const request = saying([text("a refund")]);
    request.configuration!.taskPushNotificationConfig = configOf("", { token: "t" });
    const asked = await sent(approval, request);
    expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    await untilSent(1);
    await untilState(asked.id, "delivered");
    expect(statesOf(dialect)).toEqual(["input-required"]);
    expect(tasksOf(dialect)[0]?.status.message).toBeDefined();
    expect(await list(approval, asked.id)).toHaveLength(1);
    // The same message again sets the same configuration, and the end that was sent is not sent again.
    const repeated = await sent(approval, { ...request, message: { ...request.message!, taskId: asked.id } });
    expect(repeated.id).toBe(asked.id);
    expect(await list(approval, asked.id)).toHaveLength(1);
    await sent(approval, saying([data({ decision: "approve" })], { taskId: asked.id }));
    await untilSent(2);
    await untilState(asked.id, "delivered");
    expect(statesOf(dialect)).toEqual(["input-required", "completed"]);
    expect(receiver.received.map(({ headers }) => headers["x-a2a-notification-token"])).toEqual(["t", "t"]);
  });

  test("failures and cancels are sent", async () => {
    const failing = saying([text("x")]);
    failing.configuration!.taskPushNotificationConfig = configOf("");
    await sent(await client("failing"), failing);
    await untilSent(1);
    const { gate, task } = await atGate(`cancel ${dialect}`);
    await set(gate, configOf(task.id));
    await gate.cancelTask({ ...place, id: task.id, metadata: undefined });
    await untilSent(2);
    const approval = await client("approval");
    const asked = await sent(approval, saying([text("a refund")]));
    await set(approval, configOf(asked.id));
    await approval.cancelTask({ ...place, id: asked.id, metadata: undefined });
    await untilSent(3);
    expect(statesOf(dialect)).toEqual(["failed", "canceled", "canceled"]);
  });

  test("a configuration that is set after the end sends nothing", async () => {
    const twoStep = await client("two-step");
    const ended = await sent(twoStep, saying([text("x")]));
    await set(twoStep, configOf(ended.id));
    // Another task of the same context ends later, and only its own configuration is sent to.
    const request = saying([text("y")], { contextId: ended.contextId });
    request.configuration!.taskPushNotificationConfig = configOf("", { url: `${receiver.url}/second` });
    await sent(twoStep, request);
    await untilSent(1);
    expect(receiver.received.map(({ path }) => path)).toEqual(["/second"]);
    expect(await rowsOf(ended.id)).toMatchObject([{ state: "idle" }]);
  });

  test("wrong configurations are refused, and a message with one starts no run", async () => {
    const { gate, task } = await atGate(`wrong ${dialect}`);
    const wrong = [
      { url: "" },
      { url: "/runs/search" },
      { url: "ftp://receiver.invalid/" },
      { url: "http://169.254.169.254/latest" },
      { url: "http://10.0.0.1/" },
      { url: `https://receiver.invalid/${"x".repeat(5_000)}` },
      { id: "x".repeat(501) },
      { token: "x".repeat(5_000) },
      { token: "a\r\nb: c" },
      { authentication: { scheme: "Bearer", credentials: "a\nb" } },
      { authentication: { scheme: "a b", credentials: "c" } },
      { authentication: { scheme: "Bearer", credentials: "x".repeat(10_000) } },
    ];
    for (const given of wrong) {
      const failed = await errorOf(set(gate, configOf(task.id, given)));
      expect([given, failed]).toEqual([given, expect.stringMatching(/RequestMalformed|InvalidParams/)]);
    }
    const contextId = await api.aThread();
    const request = saying([text("x")], { contextId });
    request.configuration!.taskPushNotificationConfig = configOf("", { url: "http://10.0.0.1/" });
    expect(await errorOf((await client("two-step")).sendMessage(request))).toMatch(
      /RequestMalformed|Invalid/,
    );
    expect(await api.runs(contextId)).toEqual([]);
    expect(await list(gate, task.id)).toEqual([]);
    openGate(`wrong ${dialect}`);
  });
});

test("a task has ten configurations at most", async () => {
  const approval = await clientOf(server, "approval");
  const asked = await sent(approval, saying([text("a refund")]));
  const ids = Array.from({ length: 10 }, (_, index) => `${index}`);
  await Promise.all(ids.map((id) => set(approval, configOf(asked.id, { id }))));
  expect((await list(approval, asked.id)).map(({ id }) => id).sort()).toEqual(ids);
  expect(await errorOf(set(approval, configOf(asked.id, { id: "10" })))).toBe("RequestMalformedError");
  const answer = saying([text("approve")], { taskId: asked.id });
  answer.configuration!.taskPushNotificationConfig = configOf("", { id: "10" });
  expect(await errorOf(approval.sendMessage(answer))).toBe("RequestMalformedError");
  await set(approval, configOf(asked.id, { id: "9", token: "new" }));
  expect(await list(approval, asked.id)).toHaveLength(10);
  expect(await api.runs(asked.contextId)).toHaveLength(1);
});

test("a failed notification is tried again, with the task as it is then, and later ends replace it", async () => {
  receiver.answer((_, response) => response.writeHead(500).end());
  const approval = await clientOf(server, "approval");
  const request = saying([text("a refund")]);
  request.configuration!.taskPushNotificationConfig = configOf("");
  const asked = await sent(approval, request);
  const [failed] = await eventually("it has failed", async () => {
    const rows = await rowsOf(asked.id);
    return rows[0]?.failures === 1 ? rows : undefined;
  });
  expect(failed).toMatchObject({
    state: "pending",
    last_status: 500,
    last_error: expect.any(String) as string,
  });
  receiver.answer(undefined);
  await query(server, "update threadloom.deliveries set due_at = now() where state = 'pending'");
  await untilState(asked.id, "delivered");
  expect(statesOf("JSONRPC 1.0")).toEqual(["input-required", "input-required"]);
  receiver.answer((_, response) => response.writeHead(410).end());
  await sent(approval, saying([text("approve")], { taskId: asked.id }));
  await untilState(asked.id, "failed");
  expect(statesOf("JSONRPC 1.0").at(-1)).toBe("completed");
});

test("a streamed message brings its configuration, too", async () => {
  const twoStep = await clientOf(server, "two-step");
  const request = saying([text("x")]);
  request.configuration!.taskPushNotificationConfig = configOf("");
  await eventsOf(twoStep.sendMessageStream(request));
  await untilSent(1);
  expect(statesOf("JSONRPC 1.0")).toEqual(["completed"]);
});

test("a task that is too large is sent without history and artifacts", async () => {
  const twoStep = await clientOf(server, "two-step");
  const request = saying([text("x".repeat(4_100_000))]);
  request.configuration!.taskPushNotificationConfig = configOf("");
  const { id } = await sent(twoStep, request);
  await untilSent(1);
  const [task] = tasksOf("JSONRPC 1.0");
  expect(task).toEqual({
    ...{ id, contextId: id.split(":")[0] },
    status: { state: "TASK_STATE_COMPLETED", timestamp: expect.any(String) as string },
  });
});

test("of the schemes of 0.3, the first is used", async () => {
  const { gate, task } = await atTheGate("schemes");
  const authentication = { schemes: ["Bearer", "Basic"], credentials: "c" };
  const config = { id: "1", url: receiver.url, authentication };
  const ask = async (method: string, params: object) => {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const answer = await fetch(`${server.url}/a2a/gate`, { method: "POST", headers, body });
    return (await answer.json()) as { result?: unknown; error?: { code: number } };
  };
  try {
    expect(
      await ask("tasks/pushNotificationConfig/set", { taskId: task.id, pushNotificationConfig: config }),
    ).toMatchObject({
      result: { pushNotificationConfig: { authentication: { schemes: ["Bearer"], credentials: "c" } } },
    });
    for (const odd of [
      null,
      1,
      {},
      { url: 1 },
      { url: {} },
      { ...config, token: [] },
      { ...config, id: {} },
    ]) {
      const answer = await ask("tasks/pushNotificationConfig/set", {
        taskId: task.id,
        pushNotificationConfig: odd,
      });
      expect([odd, answer.error?.code]).toEqual([odd, -32602]);
    }
    expect(await list(gate, task.id)).toHaveLength(1);
  } finally {
    openGate("schemes");
  }
});

test("an address that the rules forbid by the time of sending gets nothing", async () => {
  const database = await freshDatabase();
  const { connectionString } = database;
  const lax = await startTestServer({ connectionString, projectKeys: LOOPBACK });
  const approval = await clientOf(lax, "approval");
  const asked = await sent(approval, saying([text("a refund")]));
  await set(approval, configOf(asked.id, { id: "number" }));
  await set(approval, configOf(asked.id, { id: "name", url: `http://localhost:${receiver.port}/` }));
  await lax.close();
  const strict = await startTestServer({ connectionString });
  try {
    await sent(await clientOf(strict, "approval"), saying([text("approve")], { taskId: asked.id }));
    const rows = await eventually("both have failed", async () => {
      const found = await query<{ failures: number; last_error: string }>(
        database,
        "select failures, last_error from threadloom.deliveries",
      );
      return found.every(({ failures }) => failures === 1) ? found : undefined;
    });
    expect(rows).toHaveLength(2);
    expect(receiver.connections).toBe(0);
  } finally {
    await strict.close();
    await database.drop();
  }
});

test("configurations are gone with their task", async () => {
  const twoStep = await clientOf(server, "two-step");
  const [one, two] = [await sent(twoStep, saying([text("x")])), await sent(twoStep, saying([text("x")]))];
  for (const { id } of [one, two]) await set(twoStep, configOf(id));
  await server.client.delete(`/threads/${one.contextId}`).expect(204);
  await server.client.delete(`/threads/${two.contextId}/runs/${two.id.split(":")[1]}`).expect(204);
  expect([await rowsOf(one.id), await rowsOf(two.id)]).toEqual([[], []]);
});

test("an API run whose metadata has a wrong task id ends beside configurations", async () => {
  const twoStep = await clientOf(server, "two-step");
  const task = await sent(twoStep, saying([text("x")]));
  await set(twoStep, configOf(task.id));
  for (const task_id of ["no id", "0", newId(), { a: 1 }]) {
    const fields = { assistant_id: "two-step", input: { messages: [] }, metadata: { task_id } };
    await api.aFinishedRun(task.contextId, fields);
  }
  const runs = await api.runs(task.contextId);
  expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => "success"));
  expect(await rowsOf(task.id)).toMatchObject([{ state: "idle" }]);
});

describe("with encryption", () => {
  let encrypted: TestServer;
  beforeAll(async () => {
    encrypted = await startTestServer({ encryptionKeys: TEST_KEYS, projectKeys: LOOPBACK });
  });
  afterAll(() => encrypted.close());

  test("configurations are stored encrypted, and sent", async () => {
    receiver.answer((_, response) => response.writeHead(500).end());
    const canary = "canary-71cc";
    const request = saying([text("x")]);
    request.configuration!.taskPushNotificationConfig = configOf("", {
      ...{ id: canary, url: `${receiver.url}/${canary}`, token: canary },
      authentication: { scheme: "Bearer", credentials: canary },
    });
    const twoStep = await clientOf(encrypted, "two-step");
    const task = await sent(twoStep, request);
    const [row] = await eventually("it has failed", async () => {
      const rows = await query<{ stored: string; failures: number; last_error: string; receiver: string }>(
        encrypted,
        "select p::text as stored, failures, last_error, receiver from threadloom.deliveries p",
      );
      return rows[0]?.failures === 1 ? rows : undefined;
    });
    expect(row?.stored).not.toContain(canary);
    expect(row?.last_error).toMatch(/^enc1:/);
    expect(row?.receiver).toMatch(/^[0-9a-f]{32}$/);
    expect(await list(twoStep, task.id)).toMatchObject([{ id: canary, token: canary }]);
    expect(receiver.received[0]).toMatchObject({
      path: `/${canary}`,
      headers: { authorization: `Bearer ${canary}`, "x-a2a-notification-token": canary },
    });
  });
});

test("a server without webhooks refuses push notifications, as its card says", async () => {
  const without = await startTestServer({ projectKeys: { http: { disable_webhooks: true } } });
  try {
    const twoStep = await clientOf(without, "two-step");
    expect((await twoStep.getAgentCard()).capabilities?.pushNotifications).toBe(false);
    const task = await sent(twoStep, saying([text("one")]));
    const withPush = saying([text("two")]);
    withPush.configuration!.taskPushNotificationConfig = configOf("");
    expect(await errorOf(twoStep.sendMessage(withPush))).toBe("PushNotificationNotSupportedError");
    const asked = { ...place, taskId: task.id, id: "1" };
    const errors = await Promise.all([
      errorOf(set(twoStep, configOf(task.id))),
      errorOf(list(twoStep, task.id)),
      errorOf(twoStep.transport.getTaskPushNotificationConfig(asked, optionsOf(twoStep))),
      errorOf(twoStep.transport.deleteTaskPushNotificationConfig(asked, optionsOf(twoStep))),
    ]);
    expect(new Set(errors)).toEqual(new Set(["PushNotificationNotSupportedError"]));
  } finally {
    await without.close();
  }
});

test("a context that is no text is a mistake of the caller, also with a configuration", async () => {
  const message = { kind: "message", messageId: "1", role: "user", contextId: [randomUUID()], parts: [] };
  const configuration = { pushNotificationConfig: { url: receiver.url } };
  const answer = await fetch(`${server.url}/a2a/gate`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "message/send",
      params: { message, configuration },
    }),
  });
  const { error } = (await answer.json()) as { error?: { code: number; message: string } };
  expect(error).toMatchObject({ message: "'contextId' must be a UUID: it is the id of a thread." });
});
