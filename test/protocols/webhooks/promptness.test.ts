import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually, leastOf } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { startReceiver, type Receiver } from "./receiver.ts";

let server: TestServer;
let api: Api;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
  server = await startTestServer({ projectKeys: { webhooks: { url: { disable_loopback: false } } } });
  api = apiOf(server);
});
afterAll(async () => {
  await server.close();
  await receiver.close();
});

const TIMES = 9;
/** With a poll every two seconds, the median of nine tries would be below this once in fifty tests. */
const AT_ONCE_MS = 400;
const TRIES = 4;
const LONG = { assistant_id: "sleep", input: { milliseconds: 600_000 } };

/** Ends a run that has a webhook; returns its id. */
type Ending = (webhook: string) => Promise<string>;

const running = async (webhook: string): Promise<{ threadId: string; runId: string }> => {
  const threadId = await api.aThread();
  const { run_id: runId } = await api.aRun(threadId, { ...LONG, webhook });
  await api.untilRunIs(threadId, runId, "running");
  return { threadId, runId };
};

const ENDINGS: Record<string, Ending> = {
  "came to its end": async (webhook) => {
    const fields = { assistant_id: "counter", input: saying("hello"), webhook };
    return (await api.aRun(await api.aThread(), fields)).run_id;
  },
  "was rolled back": async (webhook) => {
    const { threadId, runId } = await running(webhook);
    await api.cancel(threadId, runId, "wait=1&action=rollback");
    return runId;
  },
  "was cancelled while it waited": async (webhook) => {
    const threadId = await api.aThread();
    const fields = { ...LONG, webhook, after_seconds: 600 };
    const { run_id: runId } = await api.aRun(threadId, fields);
    await api.cancel(threadId, runId, "wait=1&action=interrupt");
    return runId;
  },
  "was deleted with its thread": async (webhook) => {
    const threadId = await api.aThread();
    const { run_id: runId } = await api.aRun(threadId, { ...LONG, webhook, after_seconds: 600 });
    await api.remove(`/threads/${threadId}`);
    return runId;
  },
};

// An idle server polls every two seconds, so half of the first tries would begin after one second.
test.each(Object.entries(ENDINGS))("the receiver is called at once after a run %s", async (_, end) => {
  const medianMs = async (): Promise<number> => {
    const runIds: string[] = [];
    for (let time = 0; time < TIMES; time++) runIds.push(await end(receiver.url));
    const waited = await eventually("all are delivered", async () => {
      const rows = await query<{ ms: number }>(
        server,
        `select extract(epoch from last_attempt_at - run_ended_at)::float8 * 1000 as ms
           from threadloom.deliveries where state = 'delivered' and run_id = any($1::uuid[])`,
        [runIds],
      );
      return rows.length === TIMES ? rows.map(({ ms }) => ms).sort((a, b) => a - b) : undefined;
    });
    return waited[Math.floor(TIMES / 2)] ?? Infinity;
  };
  expect(await leastOf(AT_ONCE_MS, medianMs, TRIES)).toBeLessThan(AT_ONCE_MS);
});
