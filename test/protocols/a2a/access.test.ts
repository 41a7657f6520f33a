import { TaskState } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Authorize } from "../../../src/access/authorize.ts";
import { ownedBy } from "../../helpers/access.ts";
import { scopeMissing } from "../../../src/platform/domain/errors.ts";
import { grantVisibility } from "../../../src/access/visibility.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { clientOf, data, DIALECTS, errorOf, eventsOf, saying, sent, text } from "./clients.ts";

/** Tasks of other users: a caller who may not see a thread finds none of its tasks. */

const KEYS = { me: "the-key-of-me", them: "the-key-of-them", reader: "a-key-that-only-reads" };
type Owner = keyof typeof KEYS;
const idOf = (owner: Owner): string => createHash("sha256").update(KEYS[owner]).digest("hex").slice(0, 12);

/** Threads belong to the key that created them, as a project's `Auth` would have it. */
const authorize: Authorize = async (caller, resource, action, value) => {
  if (caller.kind === "key" && caller.id === idOf("reader")) {
    if (action === "update") throw scopeMissing("threads:update", "run");
    return grantVisibility(resource, undefined, value);
  }
  if (caller.kind !== "key" || resource !== "threads") return grantVisibility(resource, undefined, value);
  const given = value as { metadata?: object };
  return ownedBy(resource, caller.id, {
    ...given,
    metadata: { ...given.metadata, owner: caller.id },
  } as typeof value);
};

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: Object.values(KEYS), authorize });
});
afterAll(() => server.close());

/** Calls about a configuration that the task has. */
const pushMethods = ({ transport, protocolVersion }: Client, taskId: string) => {
  const config = { tenant: "", id: "1", taskId, url: "https://receiver.invalid/", token: "secret" };
  const options = { serviceParameters: { "A2A-Version": protocolVersion } };
  return [
    () => transport.createTaskPushNotificationConfig({ ...config, authentication: undefined }, options),
    () => transport.getTaskPushNotificationConfig(config, options),
    () => transport.listTaskPushNotificationConfig({ ...config, pageSize: 0, pageToken: "" }, options),
    () => transport.deleteTaskPushNotificationConfig(config, options),
  ] as const;
};

describe.each(DIALECTS)("over %s", (dialect) => {
  const as = (owner: Owner, assistant: string) =>
    clientOf(server, assistant, dialect, { "x-api-key": KEYS[owner] });
  const aThread = async (owner: Owner): Promise<string> => {
    const answer = await fetch(`${server.url}/threads`, {
      method: "POST",
      headers: { "x-api-key": KEYS[owner], "content-type": "application/json" },
      body: JSON.stringify({ metadata: { owner: idOf(owner) } }),
    });
    return ((await answer.json()) as { thread_id: string }).thread_id;
  };

  test("another user's task is not found, whatever the method", async () => {
    const label = `hidden ${dialect}`;
    const contextId = await aThread("them");
    const theirs = await as("them", "gate");
    const request = saying([data({ label })], { contextId, returnImmediately: true });
    const { id } = await sent(theirs, request);
    await eventually("the task works", () => isAtGate(label));
    const [set, , list] = pushMethods(theirs, id);
    await set();
    const mine = await as("me", "gate");
    const place = { tenant: "", id };
    const errors = await Promise.all([
      errorOf(mine.getTask({ ...place, historyLength: undefined })),
      errorOf(mine.cancelTask({ ...place, metadata: undefined })),
      errorOf(eventsOf(mine.resubscribeTask(place))),
      errorOf(mine.sendMessage(saying([text("x")], { taskId: id }))),
      ...pushMethods(mine, id).map((call) => errorOf(call())),
    ]);
    expect(new Set(errors)).toEqual(new Set(["TaskNotFoundError"]));
    // The id of the context is taken. The same message again must not show the task that it started for its owner.
    for (const again of [saying([data({ label: "mine" })], { contextId }), request])
      expect(await errorOf(mine.sendMessage(again))).toBe("UnsupportedOperationError");
    expect(await list()).toMatchObject({ configs: [{ id: "1", token: "secret" }] });
    expect(isAtGate(label)).toBe(true);
    openGate(label);
    const found = await theirs.getTask({ ...place, historyLength: undefined });
    expect([TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED]).toContain(found.status?.state);
  });

  test("a caller who may read a task but not change it sets and deletes no configuration of it", async () => {
    const theirs = await as("them", "approval");
    const contextId = await aThread("them");
    const { id } = await sent(theirs, saying([text("a refund")], { contextId }));
    const [set, get] = pushMethods(theirs, id);
    await set();
    const [setsToo, , list, remove] = pushMethods(await as("reader", "approval"), id);
    expect(await errorOf(setsToo())).toBeDefined();
    expect(await errorOf(remove())).toBeDefined();
    expect(await list()).toMatchObject({ configs: [{ id: "1" }] });
    expect(await get()).toMatchObject({ id: "1" });
  });

  test.skipIf(dialect === "JSONRPC 0.3")("a list holds only tasks of the caller", async () => {
    const [ours, others] = [await aThread("me"), await aThread("them")];
    const mine = await as("me", "two-step");
    await sent(await as("them", "two-step"), saying([text("hi")], { contextId: others }));
    await sent(mine, saying([text("hi")], { contextId: ours }));
    const asked = {
      ...{ tenant: "", contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: "" },
      statusTimestampAfter: undefined,
    };
    const { tasks, totalSize } = await mine.listTasks(asked);
    expect(tasks.map((task) => task.contextId)).toContain(ours);
    expect(tasks.map((task) => task.contextId)).not.toContain(others);
    expect(totalSize).toBe(tasks.length);
    expect((await mine.listTasks({ ...asked, contextId: others })).tasks).toEqual([]);
  });
});

test("without a key there is neither card nor task", async () => {
  for (const path of ["/a2a/gate/.well-known/agent-card.json", "/a2a/gate/tasks"])
    expect((await fetch(`${server.url}${path}`)).status).toBe(401);
  expect((await fetch(`${server.url}/a2a/gate`, { method: "POST", body: "{}" })).status).toBe(401);
});
