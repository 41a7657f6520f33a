import { afterAll, beforeAll, expect, test } from "vitest";
import type { Authorize } from "../../../src/access/authorize.ts";
import { grantVisibility } from "../../../src/access/visibility.ts";
import { create as createWebhooks } from "../../../src/cli/commands/webhooks.ts";
import { runCommand } from "../../../src/cli/run-command.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { createDeliveries } from "../../../src/engine/outbox/deliveries.ts";
import { pauseSeconds, startOutboxRetention } from "../../../src/engine/outbox/dispatcher.ts";
import type { WebhookDelivery } from "../../../src/protocols/webhooks/schemas.ts";
import { saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { TEST_ENCRYPTION } from "../../helpers/encryption.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { query } from "../../helpers/query.ts";
import { startReceiver, type Receiver } from "./receiver.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";
import { createAuthenticate } from "../../helpers/access.ts";

/** The deliveries that callers see, and the command line's work, on a server where callers see only their own. */

const KEYS = { me: "canary-77aa-mine", them: "canary-19bc-theirs" };
type Owner = keyof typeof KEYS;
const authenticate = createAuthenticate(Object.values(KEYS));

/** Each caller sees its own threads, and everything else. */
const authorize: Authorize = async (caller, resource, _action, value) =>
  caller.kind !== "key" || resource !== "threads"
    ? grantVisibility(resource, undefined, value)
    : grantVisibility(
        resource,
        (metadata, parameter) => `${metadata} ->> 'owner' = ${parameter(caller.id)}`,
        value,
      );

let server: TestServer;
let receiver: Receiver;
let database: Database;
beforeAll(async () => {
  receiver = await startReceiver();
  server = await startTestServer({
    apiKeys: Object.values(KEYS),
    authorize,
    projectKeys: { webhooks: { url: { disable_loopback: false } } },
  });
  database = openTestDatabase(server.connectionString, { encryption: TEST_ENCRYPTION });
});
afterAll(async () => {
  await database.close();
  await server.close();
  await receiver.close();
});

const send = async <Body>(owner: Owner, method: string, path: string, body?: object) => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: {
      "x-api-key": KEYS[owner],
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Body };
};
const get = (owner: Owner, runId: string) =>
  send<WebhookDelivery>(owner, "GET", `/webhooks/deliveries/${runId}`);

/** An ended run of an owner's thread, whose delivery is in this state. */
const aDelivery = async (owner: Owner, state: WebhookDelivery["state"]): Promise<WebhookDelivery> => {
  const caller = authenticate({ method: "GET", url: "/info", headers: { "x-api-key": KEYS[owner] } });
  const metadata = { owner: caller.kind === "key" ? caller.id : "" };
  const thread = await send<{ thread_id: string }>(owner, "POST", "/threads", { metadata });
  const run = await send<{ run_id: string }>(owner, "POST", `/threads/${thread.body.thread_id}/runs`, {
    assistant_id: "counter",
    input: saying("hello"),
    webhook: `${receiver.url}/hook`,
  });
  expect(run).toMatchObject({ status: 200 });
  const runId = run.body.run_id;
  return await eventually(`the delivery of ${runId} is ${state}`, async () => {
    const { status, body } = await get(owner, runId);
    return status === 200 && body.state === state ? body : undefined;
  });
};

const hoursAgo = (hours: number): Date => new Date(Date.now() - hours * 3_600_000);

const MISSING = "00000000-0000-7000-8000-000000000000";

test("a delivery can be read, searched and replayed by callers who see its thread, and by no others", async () => {
  receiver.answer((_, response) => response.writeHead(410).end());
  const mine = await aDelivery("me", "failed");
  expect(mine).toMatchObject({
    url: `${receiver.url}/hook`,
    run_status: "success",
    failures: 1,
    last_status: 410,
    last_error: "The receiver answered 410.",
    next_attempt_at: null,
    settled_at: expect.any(String) as string,
  });
  receiver.answer(undefined);
  const theirs = await aDelivery("them", "delivered");
  expect(theirs).toMatchObject({ failures: 0, last_status: 204, last_error: null });

  const search = (owner: Owner, body: object) =>
    send<WebhookDelivery[]>(owner, "POST", "/webhooks/deliveries/search", body);
  expect((await search("me", {})).body).toEqual([mine]);
  expect((await search("me", { state: "delivered" })).body).toEqual([]);
  expect((await search("me", { thread_id: theirs.thread_id })).body).toEqual([]);
  expect((await search("them", { state: "delivered", thread_id: theirs.thread_id })).body).toEqual([theirs]);
  expect((await search("me", { state: "lost" })).status).toBe(422);

  const notThere = { detail: `Run '${mine.run_id}' has no delivery of a webhook.` };
  expect(await get("them", mine.run_id)).toMatchObject({ status: 404, body: notThere });
  const replay = (owner: Owner, runId: string) =>
    send<WebhookDelivery>(owner, "POST", `/webhooks/deliveries/${runId}/replay`);
  expect(await replay("them", mine.run_id)).toMatchObject({ status: 404, body: notThere });
  expect((await replay("me", MISSING)).status).toBe(404);

  const before = receiver.received.length;
  expect((await replay("me", mine.run_id)).body).toMatchObject({
    state: "pending",
    failures: 0,
    last_status: null,
  });
  await eventually("it is delivered", async () => (await get("me", mine.run_id)).body.state === "delivered");
  const again = receiver.received.slice(before);
  expect(again.map(({ headers }) => headers["webhook-id"])).toEqual([mine.run_id]);

  // The delivery of a deleted thread is still listed, except for callers with a restricted view.
  await query(server, "delete from threadloom.threads where thread_id = $1", [mine.thread_id]);
  expect((await get("me", mine.run_id)).status).toBe(404);
});

test("pages name the start of the next one", async () => {
  await aDelivery("me", "delivered");
  await aDelivery("me", "delivered");
  const page = await send<WebhookDelivery[]>("me", "POST", "/webhooks/deliveries/search", { limit: 1 });
  expect(page.body).toHaveLength(1);
  expect(page.headers.get("x-pagination-next")).toBe("1");
  const last = await send<WebhookDelivery[]>("me", "POST", "/webhooks/deliveries/search", { offset: 1 });
  expect(last.headers.get("x-pagination-next")).toBeNull();
});

test("metrics count undelivered webhooks, and how long they have waited", async () => {
  receiver.answer((_, response) => response.writeHead(500).end());
  const { run_id: runId } = await aDelivery("me", "pending");
  await query(server, "update threadloom.deliveries set run_ended_at = $2 where run_id = $1", [
    runId,
    hoursAgo(1),
  ]);
  const metrics = await send<{ webhooks: object }>("me", "GET", "/metrics?format=json");
  expect(metrics.body.webhooks).toMatchObject({ num_pending: 1 });
  const text = await (await fetch(`${server.url}/metrics`, { headers: { "x-api-key": KEYS.me } })).text();
  expect(text).toMatch(/\nthreadloom_webhooks\{state="pending"\} 1\n/);
  expect(text).toMatch(/\nthreadloom_webhook_tries_total\{result="refused_status"\} [1-9]/);
  expect(text).toMatch(/\nthreadloom_webhooks_oldest_seconds 36\d\d/);
  receiver.answer(undefined);
  await send("me", "POST", `/webhooks/deliveries/${runId}/replay`);
  await eventually("it is delivered", async () => (await get("me", runId)).body.state === "delivered");
});

const command = async (...argv: string[]): Promise<{ code: number; written: string; stderr: string }> => {
  const out = { written: "", stderr: "" };
  const write = (text: string): void => void (out.written += text);
  const note = (text: string): void => void (out.stderr += text);
  const webhooks = createWebhooks({ environment: {}, write, note }, (_flags, work) => work(database));
  const code = await runCommand(webhooks, { argv, write, note });
  return { code, ...out };
};

test("the command line lists, shows and replays deliveries", async () => {
  const { run_id: runId } = await aDelivery("them", "delivered");
  const listed = await command("list", "--state", "delivered", "--json");
  expect(JSON.parse(listed.written)).toContainEqual(expect.objectContaining({ run_id: runId }));
  expect((await command("list")).written).toContain(`${runId}  delivered`);
  expect((await command("show", runId)).written).toMatch(/\nlast_status +204\n/);
  const before = receiver.received.length;
  expect(await command("replay", runId)).toMatchObject({ code: 0, written: "" });
  await eventually("it is sent", () => receiver.received.length > before);
  expect(await command("show", MISSING)).toMatchObject({
    code: 1,
    stderr: `threadloom webhooks: Run '${MISSING}' has no delivery of a webhook.\n`,
  });
  expect((await command("show", "nonsense")).code).toBe(2);
  expect((await command("list", "--state", "lost")).code).toBe(2);
});

test("text of a caller can't control the terminal of the operator who lists it", async () => {
  const { run_id: runId } = await aDelivery("me", "delivered");
  await query(server, "update threadloom.deliveries set url = $2 where run_id = $1", [
    runId,
    "/\u001b[2Jhook\n\u202e",
  ]);
  expect((await command("show", runId)).written).toContain("/?[2Jhook??");
  expect((await command("list")).written).toContain("/?[2Jhook??");
});

test("deliveries settled long ago are removed", async () => {
  const { run_id: old } = await aDelivery("me", "delivered");
  const { run_id: young } = await aDelivery("me", "delivered");
  await query(server, "update threadloom.deliveries set settled_at = $2 where run_id = $1", [
    old,
    hoursAgo(2),
  ]);
  expect(await createDeliveries(database).removeSettled(3_600, 500)).toBe(1);
  expect((await get("me", old)).status).toBe(404);
  expect((await get("me", young)).status).toBe(200);
  await startOutboxRetention(createDeliveries(database), 3_600, listeningLogger().logger).close();
});

test("two servers take each delivery once, and one that lost it stores nothing", async () => {
  const { run_id: runId } = await aDelivery("me", "delivered");
  const deliveries = createDeliveries(database);
  const places = { receiver: 4, caller: 8 };
  const options = { limit: 10, places, underWay: [], own: true, leaseSeconds: 60 };
  await query(
    server,
    "update threadloom.deliveries set state = 'pending', settled_at = null, due_at = now() + interval '1 hour' where run_id = $1",
    [runId],
  );
  await query(server, "update threadloom.deliveries set due_at = now() where run_id = $1", [runId]);
  // The server of the test may be first.
  const taken = [...(await deliveries.claim(options)).held, ...(await deliveries.claim(options)).held];
  expect(taken.length).toBeLessThanOrEqual(1);
  await deliveries.failed(
    { id: runId, attempt: 0 },
    { status: 500, reason: "late", pauseSeconds: 1, forGood: true },
  );
  expect((await get("me", runId)).body.last_error).not.toBe("late");
});

test("pauses grow to four hours, and a receiver's request can't extend them", () => {
  expect([1, 2, 3, 12, 25].map((failures) => pauseSeconds(failures, 0, 0))).toEqual([
    10, 20, 40, 14_400, 14_400,
  ]);
  expect(pauseSeconds(1, 0, 1)).toBe(5);
  expect(pauseSeconds(1, 120)).toBe(120);
  expect(pauseSeconds(1, 999_999_999)).toBe(14_400);
});
