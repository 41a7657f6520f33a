import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { isSomeWaiting } from "../helpers/locks.ts";

/** Requests that a server has accepted when it stops. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const run = { assistant_id: "two-step", input: { messages: [] } };

test.each([
  ["/runs", run],
  ["/commands", { id: 1, method: "run.start", params: run }],
])(
  "an accepted request is answered before the connection is cut: POST /threads/{id}%s",
  async (path, body) => {
    // A server that executes runs reserves a connection for requests, and would wait in any case.
    const stopping = await startTestServer({ connectionString: server.connectionString, role: "api" });
    const threadId = (await apiOf(server).aThread()) as string;
    const holder = new pg.Client({ connectionString: server.connectionString });
    await holder.connect();
    try {
      await holder.query("begin");
      await holder.query("select from threadloom.threads where thread_id = $1 for update", [threadId]);
      const answer = fetch(`${stopping.url}/threads/${threadId}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }).then(
        ({ status }) => status,
        () => "cut",
      );
      await eventually("the request waits for the thread", () =>
        // The holder can't ask: a transaction sees only the connections of its first query.
        isSomeWaiting((text) => query(server, text)),
      );
      const closed = stopping.close();
      // Long enough for a server that cuts its connections at once; a waiting one may be asked earlier or later.
      await Promise.race([answer, pause(200)]);
      await holder.query("commit");
      expect(await answer).toBe(200);
      await closed;
    } finally {
      await holder.end();
    }
  },
);
