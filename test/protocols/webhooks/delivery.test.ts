import { createHmac } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { saying, type Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { startReceiver, type Received, type Receiver } from "./receiver.ts";
import { onServer } from "../../helpers/servers.ts";

/** Runs with a webhook and a receiver. Tests set the due time in the table, so they need not wait for a retry. */

const SECRETS = ["whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "another secret of ours"];
let server: TestServer;
let api: Api;
let receiver: Receiver;
onServer(
  {
    webhookSecrets: SECRETS,
    bodyLimitBytes: 16_000_000,
    projectKeys: {
      webhooks: {
        url: { disable_loopback: false },
        headers: {
          Authorization: "Bearer ${{ env.LG_WEBHOOK_TOKEN }}",
          "X-Env": "a ${{env.LG_WEBHOOK_ENV}} b",
        },
      },
    },
    environment: { LG_WEBHOOK_TOKEN: "the token", LG_WEBHOOK_ENV: "test" },
  },
  (opened) => ({ server, api } = opened),
);
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(async () => {
  await receiver.close();
  await api.post("/runs/cancel", { status: "all" });
});

interface Delivery {
  state: string;
  failures: number;
  attempts: number;
  last_status: number | null;
  last_error: string | null;
}
/** Its row, with the reason as shown: the stored one may be encrypted. */
const delivery = async (runId: string): Promise<Delivery | undefined> => {
  const text = "select * from threadloom.deliveries where run_id = $1";
  const [row] = await query<Delivery>(server, text, [runId]);
  if (row === undefined) return undefined;
  const { body } = await api.get<Pick<Delivery, "last_error">>(`/webhooks/deliveries/${runId}`);
  return { ...row, last_error: body.last_error };
};
const untilDelivery = (runId: string, what: string, is: (found: Delivery) => boolean): Promise<Delivery> =>
  eventually(`the delivery of ${runId} ${what}`, async () => {
    const found = await delivery(runId);
    return found !== undefined && is(found) ? found : undefined;
  });
const untilDelivered = (runId: string) =>
  untilDelivery(runId, "is delivered", ({ state }) => state === "delivered");
/** Makes the delivery this much older. */
const pass = async (runId: string, time: string): Promise<void> => {
  await query(
    server,
    `update threadloom.deliveries set due_at = due_at - $2::interval, give_up_at = give_up_at - $2::interval
     where run_id = $1 and state = 'pending'`,
    [runId, time],
  );
};
const only = <T>(items: readonly T[]): T => {
  expect(items).toHaveLength(1);
  return items[0]!;
};
const expectSigned = ({ headers, body }: Received): void => {
  const signed = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body}`;
  const keys = [Buffer.from(SECRETS[0]!.slice("whsec_".length), "base64"), Buffer.from(SECRETS[1]!)];
  const signatures = keys.map((key) => `v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
  expect(headers["webhook-signature"]).toBe(signatures.join(" "));
  expect(Math.abs(Number(headers["webhook-timestamp"]) - Date.now() / 1_000)).toBeLessThan(60);
};
const COUNT = { assistant_id: "counter", input: saying("hello") };
const LONG = { assistant_id: "sleep", input: { milliseconds: 600_000 } };

test("a run that stops at an interrupt sends its pending interrupts", async () => {
  const threadId = await api.aThread();
  const webhook = `${receiver.url}/hook`;
  const asking = { assistant_id: "approval", input: { request: "fly to the moon" }, webhook };
  const asked = await api.aFinishedRun(threadId, asking);
  const [run] = (await api.get<{ run_id: string }[]>(`/threads/${threadId}/runs`)).body;
  await untilDelivered(run!.run_id);
  const { values, interrupts, status } = JSON.parse(only(receiver.received).body) as Record<string, unknown>;
  const { __interrupt__: waiting, ...shown } = asked;
  expect(waiting).toHaveLength(1);
  expect({ values, interrupts, status }).toEqual({ values: shown, interrupts: waiting, status: "success" });

  await api.aFinishedRun(threadId, { ...asking, input: undefined, command: { resume: "yes" } });
  const [second] = (await api.get<{ run_id: string }[]>(`/threads/${threadId}/runs`)).body;
  await untilDelivered(second!.run_id);
  expect(JSON.parse(receiver.received[1]!.body)).not.toHaveProperty("interrupts");
});

test("the receiver gets the run's record with its values, signed", async () => {
  const threadId = await api.aThread();
  const webhook = `${receiver.url}/hook?token=abc`;
  const { run_id: runId } = await api.aRun(threadId, {
    ...COUNT,
    metadata: { order: 7 },
    context: { tone: "kind" },
    webhook,
  });
  await untilDelivered(runId);
  const record = await api.run(threadId, runId);
  const { values } = await api.thread(threadId);
  const received = only(receiver.received);
  expect(received).toMatchObject({
    path: "/hook?token=abc",
    headers: {
      "content-type": "application/json",
      "webhook-id": runId,
      authorization: "Bearer the token",
      "x-env": "a test b",
    },
  });
  expectSigned(received);
  // Receivers get the hosted service's record; these fields are this server's own.
  const {
    error: _,
    graph_id: __,
    cancel_reason: ___,
    attempts,
    lost_attempts,
    available_at,
    ...shown
  } = record;
  expect({ attempts, lost_attempts, available_at: typeof available_at }).toEqual({
    attempts: 1,
    lost_attempts: 0,
    available_at: "string",
  });
  expect(JSON.parse(received.body)).toEqual({
    ...shown,
    webhook_sent_at: expect.stringMatching(/^\d{4}-.*\+00:00$/) as string,
    values,
  });
  expect(record).toMatchObject({ status: "success", kwargs: { webhook }, metadata: { order: 7 } });
});

describe("a webhook is sent for every end of a run:", () => {
  test("of one that failed, with its error", async () => {
    const threadId = await api.aThread();
    const { run_id: runId } = await api.aRun(threadId, {
      assistant_id: "failing",
      input: saying("hello"),
      webhook: receiver.url,
    });
    await untilDelivered(runId);
    const { error } = await api.run(threadId, runId);
    expect(only(receiver.payloads())).toMatchObject({ run_id: runId, status: "error", error });
    expect(error).not.toBeNull();
  });

  test.each([
    ["interrupt", "interrupted"],
    ["rollback", "rollback"],
  ])("of one that is cancelled by %s", async (action, status) => {
    const threadId = await api.aThread();
    const { run_id: runId } = await api.aRun(threadId, { ...LONG, webhook: receiver.url });
    await api.untilRunIs(threadId, runId, "running");
    await api.cancel(threadId, runId, `wait=1&action=${action}`);
    await untilDelivered(runId);
    expect(only(receiver.payloads())).toMatchObject({ run_id: runId, status });
  });

  test("of one that is deleted with its thread", async () => {
    const threadId = await api.aThread();
    const { run_id: runId } = await api.aRun(threadId, { ...LONG, webhook: receiver.url });
    await api.untilRunIs(threadId, runId, "running");
    await api.remove(`/threads/${threadId}`);
    await untilDelivered(runId);
    expect(only(receiver.payloads())).toMatchObject({ run_id: runId, status: "deleted", values: null });
  });

  test("of one without a thread, which leaves no data, and of those of a batch", async () => {
    const { body: values } = await api.post<object>("/runs/wait", { ...COUNT, webhook: receiver.url });
    await eventually("the webhook is received", () => receiver.received.length === 1);
    expect(only(receiver.payloads())).toMatchObject({ status: "success", values });
    await api.post("/runs/batch", [
      { ...COUNT, webhook: `${receiver.url}/a` },
      { ...COUNT, webhook: `${receiver.url}/b` },
      COUNT,
    ]);
    await eventually("both webhooks are received", () => receiver.received.length === 3);
    expect(receiver.received.map(({ path }) => path).sort()).toEqual(["/", "/a", "/b"]);
  });

  test("of a cron's run, and of one that a command of event streaming starts", async () => {
    const cron = await api.post<{ cron_id: string }>("/runs/crons", {
      ...COUNT,
      schedule: "0 0 1 1 *",
      webhook: `${receiver.url}/cron`,
    });
    const { cron_id: cronId } = cron.body;
    await query(server, "update threadloom.crons set next_run_date = now() where cron_id = $1", [cronId]);
    await api.patch(`/runs/crons/${cronId}`, {});
    await eventually("the webhook of the cron's run is received", () => receiver.received.length === 1);
    expect(only(receiver.payloads())).toMatchObject({ status: "success", metadata: { cron_id: cronId } });
    const threadId = await api.aThread();
    const params = { ...COUNT, webhook: `${receiver.url}/command` };
    await api.post(`/threads/${threadId}/commands`, { id: 1, method: "run.start", params });
    await eventually("the webhook of the command's run is received", () => receiver.received.length === 2);
    expect(receiver.received[1]?.path).toBe("/command");
    expect(receiver.payloads()[1]).not.toHaveProperty("kwargs.event_streaming");
  });
});

describe("a receiver that fails", () => {
  test("is called again, with the same id, until it answers 2xx", async () => {
    receiver.answer((_, response) => response.writeHead(503, { "retry-after": "120" }).end("no"));
    const { run_id: runId } = await api.aRun(await api.aThread(), { ...COUNT, webhook: receiver.url });
    const first = await untilDelivery(runId, "has failed", ({ failures }) => failures === 1);
    expect(first).toMatchObject({
      state: "pending",
      last_status: 503,
      last_error: "The receiver answered 503.",
    });
    const [due] = await query<{ seconds: number }>(
      server,
      "select extract(epoch from due_at - now())::float8 as seconds from threadloom.deliveries where run_id = $1",
      [runId],
    );
    expect(due?.seconds).toBeGreaterThan(60);
    receiver.answer(undefined);
    await pass(runId, "3 minutes");
    await untilDelivered(runId);
    expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toEqual([runId, runId]);
    for (const received of receiver.received) expectSigned(received);
  });

  test("that is down for an hour gets every webhook, each run once", async () => {
    const { port } = receiver;
    receiver.answer((_, response) => response.destroy());
    const runs = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const fields = { ...COUNT, webhook: `http://127.0.0.1:${port}/down` };
        return (await api.aRun(await api.aThread(), fields)).run_id;
      }),
    );
    for (let minutes = 0; minutes < 60; minutes += 20) {
      const tries = new Map<string, number>();
      for (const runId of runs) {
        await untilDelivery(runId, "is there", () => true);
        tries.set(runId, (await delivery(runId))?.failures ?? 0);
        await pass(runId, "20 minutes");
      }
      for (const runId of runs) {
        await untilDelivery(runId, "has failed again", ({ failures }) => failures > (tries.get(runId) ?? 0));
      }
    }
    receiver.answer(undefined);
    const before = receiver.received.length;
    for (const runId of runs) await pass(runId, "4 hours");
    await Promise.all(runs.map(untilDelivered));
    const delivered = receiver.received.slice(before).map(({ headers }) => headers["webhook-id"]);
    expect(delivered.sort()).toEqual([...runs].sort());
  });

  test("for three days, or is gone, is given up, and the delivery shows that", async () => {
    receiver.answer((_, response) => response.writeHead(500).end());
    const { run_id: lost } = await api.aRun(await api.aThread(), { ...COUNT, webhook: receiver.url });
    await untilDelivery(lost, "has failed", ({ failures }) => failures === 1);
    await pass(lost, "3 days");
    await untilDelivery(lost, "is given up", ({ state }) => state === "failed");
    receiver.answer((_, response) => response.writeHead(410).end());
    const { run_id: gone } = await api.aRun(await api.aThread(), { ...COUNT, webhook: receiver.url });
    const given = await untilDelivery(gone, "is given up", ({ state }) => state === "failed");
    expect(given).toMatchObject({ last_status: 410 });
  });

  test("by a redirect is not followed", async () => {
    const other = await startReceiver();
    receiver.answer((_, response) => response.writeHead(307, { location: other.url }).end());
    const { run_id: runId } = await api.aRun(await api.aThread(), { ...COUNT, webhook: receiver.url });
    const failed = await untilDelivery(runId, "has failed", ({ failures }) => failures === 1);
    expect(failed).toMatchObject({
      last_status: 307,
      last_error: expect.stringContaining("redirects") as string,
    });
    expect(other.connections).toBe(0);
    await other.close();
  });

  test("by hanging does not delay deliveries to others", async () => {
    receiver.answer(() => undefined);
    const hanging = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const fields = { ...COUNT, webhook: `${receiver.url}/hang` };
        return (await api.aRun(await api.aThread(), fields)).run_id;
      }),
    );
    await eventually("it hangs", () => receiver.received.length > 0);
    const other = await startReceiver(undefined, "127.0.0.2");
    const { run_id: runId } = await api.aRun(await api.aThread(), { ...COUNT, webhook: other.url });
    await untilDelivered(runId);
    // A quarter of the places.
    expect(receiver.received.length).toBeLessThanOrEqual(4);
    await other.close();
    await query(server, "delete from threadloom.deliveries where run_id = any($1::uuid[])", [hanging]);
  });

  test("by an endless answer has received the webhook nevertheless", async () => {
    receiver.answer((_, response) => {
      response.writeHead(200);
      const flood = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
        response.once("drain", flood);
      };
      flood();
    });
    const { run_id: runId } = await api.aRun(await api.aThread(), { ...COUNT, webhook: receiver.url });
    await untilDelivered(runId);
  });
});

test("too large values are left out, with a note", async () => {
  const { run_id: runId } = await api.aRun(await api.aThread(), {
    ...COUNT,
    input: saying("x".repeat(4_010_000)),
    webhook: receiver.url,
  });
  await untilDelivered(runId);
  const payload = only(receiver.payloads());
  expect(payload).toMatchObject({
    status: "success",
    omitted: ["kwargs", "values"],
  });
  expect(payload["values"]).toBeNull();
});

test("far too large values are not even stored with the delivery", async () => {
  const { run_id: runId } = await api.aRun(await api.aThread(), {
    ...COUNT,
    input: saying("x".repeat(6_010_000)),
    config: { configurable: { tone: "kind" } },
    webhook: receiver.url,
  });
  await untilDelivered(runId);
  expect(only(receiver.payloads())).toMatchObject({
    kwargs: { webhook: `${receiver.url}/` },
    omitted: ["kwargs", "values"],
  });
  const text = "select kwargs, config from threadloom.deliveries where run_id = $1";
  expect(await query(server, text, [runId])).toEqual([{ kwargs: null, config: {} }]);
});

test("a path of this server is requested like any other, without the configured headers", async () => {
  const { run_id: runId } = await api.aRun(await api.aThread(), { ...COUNT, webhook: "/runs/search" });
  await untilDelivered(runId);
  const { run_id: nowhere } = await api.aRun(await api.aThread(), { ...COUNT, webhook: "/nowhere" });
  await untilDelivery(nowhere, "has failed", ({ last_status }) => last_status === 404);
});
