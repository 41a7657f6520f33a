import pg from "pg";
import { expect, test } from "vitest";
import { saying, type Api, type Refusal } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";

/** A reader of a run of which memory holds only a part. */

const LOCK = 4_712;

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

test("a reader who arrives between a run's failure and its end receives the error", async () => {
  await query(
    server,
    `create function wait() returns trigger language plpgsql as
     $$ begin perform pg_advisory_xact_lock_shared(${LOCK}); return new; end $$`,
  );
  await query(
    server,
    `create trigger wait before update of status on threadloom.runs for each row
       when (new.status = 'error') execute function wait()`,
  );
  const holder = new pg.Client({ connectionString: server.connectionString });
  await holder.connect();
  try {
    await holder.query("select pg_advisory_lock($1)", [LOCK]);
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "failing", input: saying("hello") });
    await eventually("its end waits to be stored", async () => {
      const waiting = await query(
        server,
        "select from pg_locks where locktype = 'advisory' and objid = $1 and not granted",
        [LOCK],
      );
      return waiting.length > 0 ? true : undefined;
    });
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/${run.run_id}/stream`, {
      headers: { "last-event-id": "-1" },
    });
    await holder.query("select pg_advisory_unlock($1)", [LOCK]);
    expect((await stream.rest()).map(({ event }) => event)).toEqual(["metadata", "error"]);
  } finally {
    await holder.end();
  }
});

test("a reader is cut off if events are missing both in memory and in the log", async () => {
  const threadId = await api.aThread();
  const input = saying("x".repeat(3_500_000));
  const run = await api.aRun(threadId, {
    assistant_id: "two-step",
    input,
    stream_resumable: true,
    stream_mode: "values",
  });
  await api.untilRunIs(threadId, run.run_id, "success");
  // The retention does this when a run lasts longer than its events are kept.
  await query(server, "delete from threadloom.run_events where run_id = $1 and seq < 3", [run.run_id]);
  const response = await fetch(`${server.url}/threads/${threadId}/runs/${run.run_id}/stream`, {
    headers: { "last-event-id": "0" },
  });
  expect([response.status, ((await response.json()) as Refusal).detail]).toEqual([
    404,
    `Event 0 of run '${run.run_id}' is no longer kept; read the thread's state instead.`,
  ]);
});
