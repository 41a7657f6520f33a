import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { WebhookDelivery } from "../../../src/protocols/webhooks/schemas.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { startReceiver, type Receiver } from "./receiver.ts";

/** Who sees the deliveries of runs whose threads are gone, if a project's `Auth` distinguishes users. */

const KEY = "canary-51d0-operators";
let server: TestServer;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("../../access/users/langgraph.json", import.meta.url)),
    apiKeys: [KEY],
    projectKeys: { webhooks: { url: { disable_loopback: false } } },
  });
});
afterAll(async () => {
  await server.close();
  await receiver.close();
});

type Who = "alice" | "bob" | "operator";
const send = async (who: Who, method: string, path: string, body?: object) => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: {
      ...(who === "operator" ? { "x-api-key": KEY } : { authorization: `Bearer ${who}-token` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as unknown };
};
const deliveriesOf = async (who: Who): Promise<string[]> =>
  ((await send(who, "POST", "/webhooks/deliveries/search", {})).body as WebhookDelivery[]).map(
    ({ run_id: runId }) => runId,
  );
const isDelivered = async (runId: string): Promise<boolean> => {
  const { status, body } = await send("operator", "GET", `/webhooks/deliveries/${runId}`);
  return status === 200 && (body as WebhookDelivery).state === "delivered";
};
const aRun = async (who: Who, path = "/runs"): Promise<string> => {
  const webhook = `${receiver.url}/hook`;
  const { body } = await send(who, "POST", path, { assistant_id: "who", input: {}, webhook });
  const { run_id: runId } = body as { run_id: string };
  await eventually(`the delivery of ${runId}`, () => isDelivered(runId));
  return runId;
};

test("a user finds, reads and replays deliveries of own runs without a thread, and no other user's", async () => {
  const hers = await aRun("alice");
  const his = await aRun("bob");
  expect(await deliveriesOf("alice")).toEqual([hers]);
  expect(await deliveriesOf("bob")).toEqual([his]);
  expect(await deliveriesOf("operator")).toEqual(expect.arrayContaining([hers, his]));

  const path = `/webhooks/deliveries/${hers}`;
  expect(await send("alice", "GET", path)).toMatchObject({ status: 200, body: { state: "delivered" } });
  const before = receiver.received.length;
  expect((await send("bob", "GET", path)).status).toBe(404);
  expect((await send("bob", "POST", `${path}/replay`)).status).toBe(404);
  expect(await send("alice", "POST", `${path}/replay`)).toMatchObject({
    status: 200,
    body: { run_id: hers },
  });
  await eventually("it to be sent again", () => receiver.received.length > before);
  const again = receiver.received.slice(before);
  expect(again.map(({ headers }) => headers["webhook-id"])).toEqual([hers]);
});

test("while the thread exists only its owner sees them, even if another user created the run", async () => {
  const { body } = await send("alice", "POST", "/threads", {});
  const { thread_id: threadId } = body as { thread_id: string };
  const runId = await aRun("alice", `/threads/${threadId}/runs`);
  const newOwner = JSON.stringify({ owner: "bob" });
  await query(server, "update threadloom.threads set metadata = $2::jsonb where thread_id = $1", [
    threadId,
    newOwner,
  ]);
  const path = `/webhooks/deliveries/${runId}`;
  expect((await send("alice", "GET", path)).status).toBe(404);
  expect((await send("alice", "POST", `${path}/replay`)).status).toBe(404);
  expect((await send("bob", "GET", path)).status).toBe(200);
});
