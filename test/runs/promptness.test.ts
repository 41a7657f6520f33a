import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { readStream } from "../helpers/server-sent-events.ts";

/** What a look at the queue, or at a run's row, twice a second would cost each of them at least. */
const POLL_MS = 500;
/** The quickest counts: however busy the machine is, a server that polls is never quicker. */
const TRIES = 10;

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer();
  api = apiOf(server);
});
afterAll(() => server.close());

const RUN = { assistant_id: "two-step", input: saying("hello") };

test.each<[string, (threadId: string) => Promise<unknown>]>([
  ["waits for it", (threadId) => api.aFinishedRun(threadId, RUN)],
  ["streams it", (threadId) => readStream(`${api.url}/threads/${threadId}/runs/stream`, { body: RUN })],
  [
    "creates it and joins it",
    async (threadId) => await api.join(threadId, (await api.aRun(threadId, RUN)).run_id),
  ],
])("who %s is told of a run's end when it ends, not at the next look", async (_what, run) => {
  let quickestMs = Infinity;
  for (let count = 0; count < TRIES && quickestMs >= POLL_MS; count += 1) {
    const threadId = await api.aThread();
    const begin = performance.now();
    await run(threadId);
    quickestMs = Math.min(quickestMs, performance.now() - begin);
  }
  expect(quickestMs).toBeLessThan(POLL_MS);
});
