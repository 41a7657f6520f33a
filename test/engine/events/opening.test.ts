import { describe, expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { leastOf } from "../../helpers/conditions.ts";
import { namesOf, openStream, readStream } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";

/** The first heartbeat comes after 5 s; headers that wait for the first write come with it. */
const SOON_MS = 2_500;

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

describe("the headers of a stream", () => {
  test("arrive at once, even if the run waits and there is no event yet", async () => {
    const delayed = { assistant_id: "counter", input: {}, after_seconds: 3_600 };
    const openedMs = await leastOf(SOON_MS, async () => {
      const threadId = await api.aThread();
      const start = performance.now();
      const created = await openStream(`${server.url}/threads/${threadId}/runs/stream`, { body: delayed });
      const path = created.headers.get("content-location") ?? "";
      const joined = await openStream(`${server.url}${path}/stream`);
      const tookMs = performance.now() - start;
      expect(created.seen).toEqual([]);
      await api.post(`${path}/cancel?wait=1`);
      expect(await created.rest()).toEqual([]);
      expect(await joined.rest()).toEqual([]);
      return tookMs;
    });
    expect(openedMs).toBeLessThan(SOON_MS);
  });

  test("contain the run's address, and the address to continue reading", async () => {
    const threadId = await api.aThread();
    for (const path of [`/threads/${threadId}/runs/stream`, "/runs/stream"]) {
      const stream = await openStream(`${server.url}${path}`, {
        body: { assistant_id: "counter", input: {} },
      });
      const [metadata] = await stream.rest();
      const { run_id: runId } = metadata?.data as { run_id: string };
      const location = stream.headers.get("content-location") ?? "";
      expect(stream.headers.get("content-type")).toContain("text/event-stream");
      expect(location).toMatch(new RegExp(`^/threads/[0-9a-f-]{36}/runs/${runId}$`));
      expect(stream.headers.get("location")).toBe(`${location}/stream?last_event_id=-1`);
      if (path.startsWith("/threads")) expect(location).toContain(threadId);
    }
  });
});

test("a run that just ended can be streamed again, with its id in upper or lower case", async () => {
  const threadId = await api.aThread();
  const run = { assistant_id: "counter", input: { count: 1 } };
  const first = await openStream(`${server.url}/threads/${threadId}/runs/stream`, { body: run });
  const names = namesOf(await first.rest());
  const [, , , , runId = ""] = (first.headers.get("content-location") ?? "").split("/");
  const again = `${server.url}/threads/${threadId.toUpperCase()}/runs/${runId.toUpperCase()}/stream`;
  expect(namesOf(await readStream(again, { headers: { "last-event-id": "-1" } }))).toEqual(names);
});
