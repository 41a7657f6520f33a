import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { openStream } from "../../helpers/server-sent-events.ts";

/** A reader asks a server that does not execute the run. The run ends before the executing server receives the reader's signal. */

let server: TestServer;
let api: Api;
let holder: pg.Client;
beforeAll(async () => {
  // Executes nothing: the test plays the other server.
  server = await startTestServer({ role: "api" });
  api = apiOf(server);
  holder = new pg.Client({ connectionString: server.connectionString });
  await holder.connect();
});
afterEach(async () => {
  await holder.query("rollback");
});
afterAll(async () => {
  await holder.end();
  await server.close();
});

test("a reader who arrives while the run waits receives it from its first event, however late the log is read", async () => {
  const threadId = await api.aThread();
  const run = await api.aRun(threadId, { assistant_id: "two-step", input: saying("hello") });
  // The reader's first query waits until the run is over.
  await holder.query("begin; lock table threadloom.run_events in access exclusive mode");
  const reader = await openStream(`${server.url}/threads/${threadId}/runs/${run.run_id}/stream`);
  await eventually("the log is queried", async () => {
    const waiting = await query(
      server,
      "select 1 from pg_locks where not granted and relation = 'threadloom.run_events'::regclass",
    );
    return waiting.length > 0;
  });
  for (const [seq, event] of ["metadata", "values", "values"].entries()) {
    await holder.query(
      "insert into threadloom.run_events (thread_id, run_id, seq, event, data) values ($1, $2, $3, $4, '{}')",
      [threadId, run.run_id, seq, event],
    );
  }
  await holder.query("update threadloom.runs set status = 'success', attempt = 1 where run_id = $1", [
    run.run_id,
  ]);
  await holder.query("commit");
  expect((await reader.rest()).map(({ id }) => id)).toEqual([0, 1, 2]);
});

test("a reader whose run is deleted before the reader is announced gets an error, not an empty stream", async () => {
  const threadId = await api.aThread();
  const run = await api.aRun(threadId, { assistant_id: "two-step", input: saying("hello") });
  await holder.query("begin");
  await holder.query("delete from threadloom.runs where run_id = $1", [run.run_id]);
  const answer = fetch(`${server.url}/threads/${threadId}/runs/${run.run_id}/stream`);
  await eventually("the reader is being announced", async () => {
    const waiting = await query(
      server,
      "select 1 from pg_locks where not granted and locktype = 'transactionid'",
    );
    return waiting.length > 0;
  });
  await holder.query("commit");
  expect((await answer).status).toBe(404);
});
