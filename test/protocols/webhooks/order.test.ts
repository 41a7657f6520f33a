import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
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

const states = (runIds: readonly string[]): Promise<{ state: string; failures: number }[]> =>
  query(
    server,
    "select state, failures from threadloom.deliveries where run_id = any($1::uuid[]) order by run_id",
    [runIds],
  );

test("a thread's run is delivered while another one's is retried, and each run's tries come in order", async () => {
  const threadId = await api.aThread();
  const fields = { assistant_id: "counter", input: saying("hello") };
  const aRun = async (path: string): Promise<string> => {
    const { run_id: runId } = await api.aRun(threadId, { ...fields, webhook: `${receiver.url}${path}` });
    await api.untilRunIs(threadId, runId, "success");
    return runId;
  };
  receiver.answer(({ path }, response) => response.writeHead(path === "/first" ? 503 : 204).end());
  const runIds = [await aRun("/first"), await aRun("/second"), await aRun("/third")];
  await eventually("the others are received", async () => {
    const [first, second, third] = await states(runIds);
    return first?.failures === 1 && second?.state === "delivered" && third?.state === "delivered";
  });
  receiver.answer(undefined);
  await query(server, "update threadloom.deliveries set due_at = now() where state = 'pending'");
  await eventually("all are received", async () =>
    (await states(runIds)).every(({ state }) => state === "delivered"),
  );

  // Receivers can order runs by `run_ended_at`; within a run the times of the tries rise.
  const ends = receiver
    .payloads()
    .sort((a, b) => String(a["run_ended_at"]).localeCompare(String(b["run_ended_at"])));
  expect([...new Set(ends.map((payload) => payload["run_id"]))]).toEqual(runIds);
  const tries = receiver.payloads().filter((payload) => payload["run_id"] === runIds[0]);
  expect(tries).toHaveLength(2);
  const times = tries.map((payload) => String(payload["webhook_sent_at"]));
  expect(times).toEqual([...times].sort());
});
