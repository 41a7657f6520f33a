import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createEventLog } from "../../../src/engine/events/log.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let server: TestServer;
let replica: TestServer;
let api: Api;
beforeAll(async () => {
  const graphConfigFile = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));
  server = await startTestServer({ graphConfigFile });
  replica = await startTestServer({
    graphConfigFile,
    connectionString: server.connectionString,
    role: "api",
  });
  api = apiOf(server);
});
let database: Database | undefined;
const openedDatabase = (): Database => (database ??= openTestDatabase(server.connectionString));
afterEach(async () => {
  await query(server, "drop function if exists refuse cascade");
});
afterAll(async () => {
  await database?.close();
  await replica.close();
  await server.close();
});

const MIB = 1024 * 1024;
const bulky = (count: number, bytes: number) => ({
  assistant_id: "bulky",
  input: { count, bytes },
  stream_mode: "custom",
  stream_resumable: true,
});
const fromTheStart = { headers: { "last-event-id": "-1" } };

test("events of many megabytes are delivered and replayed in the run's first attempt", async () => {
  const threadId = await api.aThread();
  const result = await api.aFinishedRun(threadId, bulky(2, 17 * MIB));
  expect(result.__error__).toBeUndefined();
  const [run] = await query<{ run_id: string; status: string; attempt: number }>(
    server,
    "select run_id, status, attempt from threadloom.runs where thread_id = $1",
    [threadId],
  );
  expect(run).toMatchObject({ status: "success", attempt: 1 });
  for (const { url } of [server, replica]) {
    // Reads the whole answer at once, because the other tests' reader scans from the start for each piece.
    const answer = await fetch(`${url}/threads/${threadId}/runs/${run?.run_id}/stream`, fromTheStart);
    const text = (await answer.text()).replaceAll(": heartbeat\n", "");
    const frames = text.split("\n\n").map((frame) => frame.split("\n"));
    expect(frames.map(([id]) => id)).toEqual(["id: 0", "id: 1", "id: 2", ""]);
    const lengths = frames.slice(1, 3).map(([, , data]) => data?.length);
    expect(lengths).toEqual(Array(2).fill('data: ""'.length + 17 * MIB));
  }
});

test("a page of the log contains at most its byte limit, or one event", async () => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, bulky(5, MIB));
  const [run] = await api.runs(threadId);
  const log = createEventLog(openedDatabase());
  const pageAfter = async (after: number, limits: { events: number; bytes: number }): Promise<number[]> => {
    const events = await log.read({ threadId, runId: run?.run_id ?? "" }, after, {
      ...limits,
      largeToo: true,
      wire: "first",
    });
    return events === "large" ? [] : events.map(({ seq }) => seq);
  };
  expect(await pageAfter(-1, { events: 500, bytes: 2 * MIB })).toEqual([0, 1]);
  expect(await pageAfter(2, { events: 500, bytes: 100 })).toEqual([3]);
  expect(await pageAfter(-1, { events: 2, bytes: 100 * MIB })).toEqual([0, 1]);
  expect(await pageAfter(5, { events: 500, bytes: 100 })).toEqual([]);
});

test("the log of a run doesn't repeat a large string that the state has, and every reader gets the whole events", async () => {
  const threadId = await api.aThread();
  const body = {
    assistant_id: "report",
    input: { step: 0 },
    stream_mode: ["values", "updates"],
    stream_resumable: true,
    durability: "sync",
  };
  const live = await fetch(`${server.url}/threads/${threadId}/runs/stream`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const withoutPings = (text: string) => text.replaceAll(": heartbeat\n", "");
  const text = withoutPings(await live.text());
  expect(text.length).toBeGreaterThan(5 * MIB);
  const [{ run_id: runId = "" } = {}] = await api.runs(threadId);
  for (const { url } of [replica, server]) {
    const answer = await fetch(`${url}/threads/${threadId}/runs/${runId}/stream`, fromTheStart);
    expect(withoutPings(await answer.text()) === text).toBe(true);
  }
  const events = await query<{ bytes: number; strings: number }>(
    server,
    `select octet_length(data) as bytes, coalesce(cardinality(strings), 0) as strings from threadloom.run_events
     where thread_id = $1 order by seq`,
    [threadId],
  );
  // What a step streams is in the log before its checkpoint, so these events have the string themselves.
  const whole = events.filter(({ bytes }) => bytes > MIB / 2);
  expect(whole.length).toBeLessThanOrEqual(2);
  expect(events.filter(({ strings }) => strings === 1).length).toBeGreaterThanOrEqual(4);

  const log = createEventLog(openedDatabase());
  const page = { events: 500, bytes: 100_000, largeToo: true, wire: "first" } as const;
  const last = events.length - 1;
  expect(await log.read({ threadId, runId }, last - 1, page)).toHaveLength(1);
  expect(await log.read({ threadId, runId }, last - 1, { ...page, largeToo: false })).toBe("large");
});

test("a run whose events the database refuses ends in its first attempt with an error that names the database", async () => {
  await query(
    server,
    `create function refuse() returns trigger language plpgsql as
     $$ begin raise exception 'no' using errcode = 'P0001'; end $$`,
  );
  await query(
    server,
    "create trigger refuse before insert on threadloom.run_events for each row execute function refuse()",
  );
  const threadId = await api.aThread();
  const result = await api.aFinishedRun(threadId, {
    assistant_id: "two-step",
    input: { messages: [] },
    stream_resumable: true,
  });
  expect(result.__error__).toEqual({
    error: "DatabaseError",
    message: "A database refused the run's statement; the server's log says why.",
  });
  expect(
    await query(server, "select status, attempt from threadloom.runs where thread_id = $1", [threadId]),
  ).toEqual([{ status: "error", attempt: 1 }]);
});
