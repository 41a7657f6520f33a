import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { RunEvent } from "../../../src/engine/events/log.ts";
import { sendRunEvents } from "../../../src/engine/events/transports/server-sent-events.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { aBareApp } from "../../helpers/parts.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { startTcpProxy, type ProxiedConnection, type TcpProxy } from "../../helpers/tcp-proxy.ts";

/** A clean end of a stream means that the run has ended, so no failure may look like one. */

let server: TestServer;
let proxy: TcpProxy;
let replica: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer();
  proxy = await startTcpProxy(server.connectionString);
  // Executes nothing, so every run is executed by another server; only this replica's connection to the database is bad.
  replica = await startTestServer({ connectionString: proxy.connectionString, role: "api" });
  api = apiOf(server);
});
afterEach(async () => {
  await api.post("/runs/cancel", { status: "all" });
});
afterAll(async () => {
  await replica.close();
  await proxy.close();
  await server.close();
});

const ofRequests = ({ application }: ProxiedConnection): boolean => application === "threadloom";
const TICKING = { assistant_id: "sleep", input: { milliseconds: 600_000 }, stream_mode: "custom" };

describe("a reader on another server whose database connection fails", () => {
  test.each([{ stream_resumable: true }, {}])(
    "misses nothing and sees no end before the run's end (%j)",
    async (more) => {
      const threadId = await api.aThread();
      const run = await api.aRun(threadId, { ...TICKING, ...more });
      await api.untilRunIs(threadId, run.run_id, "running");
      const stream = await openStream(`${replica.url}/threads/${threadId}/runs/${run.run_id}/stream`, {
        headers: { "last-event-id": "-1" },
      });
      let seen = (await stream.until(({ event }) => event === "custom")).id ?? 0;
      for (let outage = 0; outage < 5; outage += 1) {
        expect(proxy.loseNextAnswer(ofRequests)).toBeGreaterThan(0);
        seen = (await stream.until(({ id = 0 }) => id > seen + 1)).id ?? 0;
      }
      await api.cancel(threadId, run.run_id);
      // A run that is not resumable is logged only from its first reader on.
      const ids = (await stream.rest()).filter(({ event }) => event === "custom").map(({ id }) => id);
      expect(ids).toEqual(ids.map((_, index) => (ids[0] ?? 0) + index));
      expect(ids.at(-1)).toBeGreaterThanOrEqual(seen);
    },
  );
});

describe("a stream whose events can't be read any more", () => {
  const anEvent: RunEvent = { seq: 0, event: "metadata", data: "{}" };

  test("is cut off and does not end cleanly", async () => {
    let reads = 0;
    let fail = (): void => undefined;
    const failed = new Promise<never>((_resolve, reject) => {
      fail = () => reject(new Error("the reading failed"));
    });
    const { app, lines } = await aBareApp({
      routes: [
        async (routes) => {
          routes.get("/stream", { sse: "manual" }, async (_request, reply) => {
            await sendRunEvents(reply, {
              async next() {
                reads += 1;
                return reads > 1 ? await failed : [anEvent];
              },
              close: () => undefined,
            });
          });
        },
      ],
    });
    try {
      const url = await app.listen({ host: "127.0.0.1", port: 0 });
      const stream = await openStream(`${url}/stream`);
      expect((await stream.next())?.id).toBe(0);
      fail();
      await expect(stream.next()).rejects.toThrow();
      expect(lines.filter((line) => line.includes("the reading failed"))).not.toEqual([]);
    } finally {
      await app.close();
    }
  });
});
