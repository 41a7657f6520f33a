import { expect, test } from "vitest";
import { saying, type Api } from "../../helpers/api.ts";
import { leastOf, millisecondsOf } from "../../helpers/conditions.ts";
import { readStream } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";

/** A poll of the queue, or of a run's row, twice a second would cost at least this. */
const POLL_MS = 500;

let api: Api;
onServer({}, (opened) => ({ api } = opened));

const RUN = { assistant_id: "two-step", input: saying("hello") };

test.each<[string, (threadId: string) => Promise<unknown>]>([
  ["waits for it", (threadId) => api.aFinishedRun(threadId, RUN)],
  ["streams it", (threadId) => readStream(`${api.url}/threads/${threadId}/runs/stream`, { body: RUN })],
  [
    "creates it and joins it",
    async (threadId) => await api.join(threadId, (await api.aRun(threadId, RUN)).run_id),
  ],
])("a client that %s learns of a run's end when it ends, not at the next poll", async (_what, run) => {
  const quickestMs = await leastOf(POLL_MS, async () => {
    const threadId = await api.aThread();
    return await millisecondsOf(() => run(threadId));
  });
  expect(quickestMs).toBeLessThan(POLL_MS);
});
