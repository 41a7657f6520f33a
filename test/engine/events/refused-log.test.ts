import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { openStream } from "../../helpers/server-sent-events.ts";

/** The database refuses every event. A run that is not resumable is logged only for its readers on other servers. */

let server: TestServer;
let replica: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer();
  replica = await startTestServer({ connectionString: server.connectionString, role: "api" });
  api = apiOf(server);
  await query(server, "create sequence refusals");
  // A sequence is not rolled back, so its number stays used even if the transaction fails.
  await query(
    server,
    `create function refuse() returns trigger language plpgsql as
     $$ begin perform nextval('public.refusals'); raise exception 'no' using errcode = 'P0001'; end $$`,
  );
  await query(
    server,
    "create trigger refuse before insert on threadloom.run_events for each row execute function refuse()",
  );
});
afterAll(async () => {
  await replica.close();
  await server.close();
});

test("if events can't be logged for a reader elsewhere, that reader is cut off, and a reader on the executing server misses nothing", async () => {
  const threadId = await api.aThread();
  const here = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
    body: { assistant_id: "sleep", input: { milliseconds: 600_000 }, stream_mode: "custom" },
  });
  await here.until(({ event }) => event === "custom");
  const runId = here.headers.get("content-location")?.split("/").at(-1) ?? "";
  const elsewhere = await openStream(`${replica.url}/threads/${threadId}/runs/${runId}/stream`);
  await eventually("an event was refused", async () => {
    const [row] = await query<{ refused: boolean }>(server, "select is_called as refused from refusals");
    return row?.refused === true;
  });
  // The reader on the other server is cut off, because a clean end would mean that it received everything.
  await expect(elsewhere.rest()).rejects.toThrow();
  const seen = here.seen.at(-1)?.id ?? 0;
  await here.until(({ id = 0 }) => id > seen + 2);
  await api.cancel(threadId, runId);
  await here.rest();
  expect(here.seen.map(({ id }) => id)).toEqual(here.seen.map((_, index) => index));
  expect((await api.run(threadId, runId)).status).toBe("interrupted");
});

const createdElsewhere = (stream_resumable: boolean) =>
  openStream(`${replica.url}/runs/stream`, {
    body: { assistant_id: "sleep", input: { milliseconds: 1 }, stream_resumable },
  });

test("a creator on another server gets the error of a resumable run whose events were refused", async () => {
  const stream = await createdElsewhere(true);
  await stream.rest();
  expect(stream.seen.map(({ event }) => event)).toEqual(["error"]);
});

test("a creator on another server is cut off if the run succeeds without its events", async () => {
  const stream = await createdElsewhere(false);
  await expect(stream.rest()).rejects.toThrow();
});
