import { describe, expect, onTestFinished, test } from "vitest";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { saying, textsOf, type Api, type Refusal, type Result } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { namesOf, openStream, readStream } from "../../helpers/server-sent-events.ts";
import { onTwoServers } from "../../helpers/servers.ts";

const LONG = { assistant_id: "sleep", input: { milliseconds: 600_000 } };
const TWO_STEP = { assistant_id: "two-step", input: saying("hello") };

let server: TestServer;
let replica: TestServer;
let api: Api;
let other: Api;
onTwoServers((servers) => ({ server, replica, api, other } = servers));

const threadOf = (headers: Headers): string => headers.get("content-location")?.split("/")[2] ?? "";
const isGone = async (threadId: string): Promise<boolean> =>
  (await api.get(`/threads/${threadId}`)).status === 404;
const untilGone = (threadId: string) => eventually(`thread ${threadId} is gone`, () => isGone(threadId));
/**
 * Either server may execute a run. A run that another process reads stays a minute longer, so this lets the minute
 * pass.
 */
const untilRemoved = (threadId: string) =>
  eventually(`thread ${threadId} is removed`, async () => {
    await query(
      server,
      `update threadloom.runs set updated_at = updated_at - interval '61 s'
       where thread_id = $1 and status not in ('pending', 'running')`,
      [threadId],
    );
    return isGone(threadId);
  });

describe("a threadless run", () => {
  test("streams like one on a thread", async () => {
    const events = await readStream(`${server.url}/runs/stream`, {
      body: { ...TWO_STEP, stream_mode: "updates" },
    });
    expect(events.map(({ id, event, data }) => [id, event, data])).toEqual([
      [0, "metadata", { run_id: expect.any(String), attempt: 1 }],
      [1, "updates", { first: { messages: [expect.objectContaining({ type: "ai", content: "first" })] } }],
      [2, "updates", { second: { messages: [expect.objectContaining({ type: "ai", content: "second" })] } }],
    ]);
  });

  test.each(["wait", "stream"])("%s leaves no thread and no run", async (way) => {
    const before = (await api.post<number>("/threads/count", {})).body;
    const answer =
      way === "wait"
        ? (await api.post("/runs/wait", TWO_STEP)).headers
        : await openStream(`${server.url}/runs/stream`, { body: TWO_STEP }).then(async (stream) => {
            await stream.rest();
            return stream.headers;
          });
    expect(await isGone(threadOf(answer))).toBe(true);
    expect((await api.post<number>("/threads/count", {})).body).toBe(before);
    expect((await api.get(answer.get("content-location") ?? "")).status).toBe(404);
  });

  test("in the background can be read while it runs, and leaves no data", async () => {
    const { status, headers, body: run } = await api.post<RunRecord>("/runs", LONG);
    expect(status).toBe(200);
    expect(headers.get("content-location")).toBe(`/threads/${run.thread_id}/runs/${run.run_id}`);
    expect(await api.run(run.thread_id, run.run_id)).toMatchObject({ run_id: run.run_id });
    await api.cancel(run.thread_id, run.run_id);
    await untilRemoved(run.thread_id);
  });

  test.each(["success", "failing"])("with on_completion keep keeps its thread (%s)", async (kind) => {
    const body = kind === "success" ? TWO_STEP : { assistant_id: "failing", input: saying("hello") };
    const { headers } = await api.post("/runs/wait", { ...body, on_completion: "keep" });
    const thread = await api.thread(threadOf(headers));
    expect(thread).toMatchObject({ status: kind === "success" ? "idle" : "error" });
    expect(textsOf(thread.values?.messages)).toEqual(
      kind === "success" ? ["hello", "first", "second"] : ["hello", "prepared"],
    );
  });

  test.each(["failing", "approval"])("leaves no data when it ends otherwise (%s)", async (assistant_id) => {
    const { headers } = await api.post("/runs/wait", { assistant_id, input: saying("hello") });
    expect(await isGone(threadOf(headers))).toBe(true);
  });

  test.each(["interrupt", "rollback"])("that is cancelled (%s) leaves no data", async (action) => {
    const running = (await api.post<RunRecord>("/runs", LONG)).body;
    await api.untilRunIs(running.thread_id, running.run_id, "running");
    const waiting = (await api.post<RunRecord>("/runs", { ...LONG, after_seconds: 3_600 })).body;
    for (const run of [running, waiting]) {
      expect((await api.cancel(run.thread_id, run.run_id, `wait=1&action=${action}`)).status).toBe(204);
      await untilRemoved(run.thread_id);
    }
  });

  test("that is cancelled with its thread kept leaves the thread idle", async () => {
    const run = (await api.post<RunRecord>("/runs", { ...LONG, on_completion: "keep" })).body;
    await api.untilRunIs(run.thread_id, run.run_id, "running");
    await api.cancel(run.thread_id, run.run_id, "wait=1&action=rollback");
    expect(await api.thread(run.thread_id)).toMatchObject({ status: "idle", values: null });
  });

  test("is cancelled when its client disconnects, if requested", async () => {
    const stream = await openStream(`${server.url}/runs/stream`, {
      body: { ...LONG, on_disconnect: "cancel" },
    });
    await stream.next();
    stream.close();
    await untilGone(threadOf(stream.headers));
  });

  test("streams every event and leaves no data if another server executes it", async () => {
    for (let round = 0; round < 5; round += 1) {
      const stream = await openStream(`${replica.url}/runs/stream`, {
        body: { ...TWO_STEP, stream_mode: ["updates", "values"] },
      });
      expect(namesOf(await stream.rest())).toEqual([
        "metadata",
        "values",
        "updates",
        "values",
        "updates",
        "values",
      ]);
      expect(await isGone(threadOf(stream.headers))).toBe(true);
    }
  });

  test("streams its error if another server executes it", async () => {
    const events = await readStream(`${replica.url}/runs/stream`, {
      body: { assistant_id: "failing", input: { reason: "out of luck" }, stream_mode: "updates" },
    });
    expect(events.map(({ event, data }) => [event, data]).at(-1)).toEqual([
      "error",
      { error: "Error", message: "out of luck" },
    ]);
  });

  test("answers with its result and leaves no data if another server executes it", async () => {
    const { headers, body } = await other.post<Result>("/runs/wait", TWO_STEP);
    expect(textsOf(body.messages)).toEqual(["hello", "first", "second"]);
    expect(await isGone(threadOf(headers))).toBe(true);
  });

  test("that was created on another server can be joined there until it ends", async () => {
    const run = (
      await other.post<RunRecord>("/runs", {
        assistant_id: "sleep",
        input: { messages: [], milliseconds: 300 },
      })
    ).body;
    const joined = await other.join(run.thread_id, run.run_id);
    expect(textsOf(joined.messages)).toEqual(["Slept for 300 ms."]);
    await untilRemoved(run.thread_id);
  });
});

describe("a batch", () => {
  test("creates its runs in order and returns all of them", async () => {
    const { status, body } = await api.post<RunRecord[]>("/runs/batch", [
      { ...TWO_STEP, metadata: { index: 0 }, on_completion: "keep" },
      // In the form of the JS SDK, with its own spelling beside the API's.
      {
        ...TWO_STEP,
        assistantId: "two-step",
        streamMode: ["values"],
        metadata: { index: 1 },
        on_completion: "keep",
      },
    ]);
    expect(status).toBe(200);
    expect(body.map((run) => run.metadata["index"])).toEqual([0, 1]);
    expect(new Set(body.map((run) => run.thread_id)).size).toBe(2);
    for (const run of body) {
      expect(textsOf((await api.join(run.thread_id, run.run_id)).messages)).toEqual([
        "hello",
        "first",
        "second",
      ]);
    }
  });

  test("stores a hundred runs in a few statements, in their order, each with its own delay", async () => {
    await query(server, "create sequence inserts");
    await query(
      server,
      `create function count_insert() returns trigger language plpgsql as
       'begin perform nextval(''public.inserts''); return null; end'`,
    );
    await query(
      server,
      "create trigger count_insert after insert on threadloom.runs for each statement execute function count_insert()",
    );
    onTestFinished(async () => {
      await query(server, "drop function count_insert cascade");
      await query(server, "drop sequence inserts");
    });
    const delays = Array.from({ length: 100 }, (_, index) => 3_600 + ((index * 37) % 100));
    const { status, body } = await api.post<RunRecord[]>(
      "/runs/batch",
      delays.map((after_seconds) => ({ ...TWO_STEP, after_seconds })),
    );
    expect(status).toBe(200);
    const [counted] = await query<{ statements: string }>(
      server,
      "select last_value as statements from inserts",
    );
    expect(Number(counted?.statements)).toBeLessThan(12);
    const ids = body.map((run) => run.run_id);
    const stored = await query<{ run_id: string; delay: number }>(
      server,
      `select run_id, extract(epoch from available_at - created_at)::float8 as delay from threadloom.runs
       where run_id = any($1::uuid[]) order by created_at, run_id`,
      [ids],
    );
    expect(stored.map((row) => row.run_id)).toEqual(ids);
    for (const [index, { delay }] of stored.entries())
      expect(Math.abs(delay - (delays[index] ?? 0))).toBeLessThan(60);
  });

  test("creates none if one of them names a missing assistant", async () => {
    const before = (await api.post<number>("/threads/count", {})).body;
    const answer = await api.post<Refusal>("/runs/batch", [
      { ...TWO_STEP, on_completion: "keep" },
      { ...TWO_STEP, assistant_id: "nobody" },
    ]);
    expect(answer.status).toBe(404);
    expect(answer.body.detail).toContain("nobody");
    expect((await api.post<number>("/threads/count", {})).body).toBe(before);
  });

  test("stores none if the database goes away halfway", async () => {
    await query(
      server,
      `create function go_away() returns trigger language plpgsql as
       'begin raise exception using errcode = ''53300'', message = ''no connection left''; end'`,
    );
    await query(
      server,
      `create trigger go_away before insert on threadloom.runs for each row when (new.metadata ->> 'index' = 'last')
       execute function go_away()`,
    );
    onTestFinished(async () => {
      await query(server, "drop function go_away cascade");
    });
    const before = (await api.post<number>("/threads/count", {})).body;
    const bodies = [{ index: "first" }, { index: "last" }].map((metadata) => ({
      ...TWO_STEP,
      metadata,
      on_completion: "keep",
    }));
    expect((await api.post("/runs/batch", bodies)).status).toBe(503);
    expect((await api.post<number>("/threads/count", {})).body).toBe(before);
  });

  test("creates none if their copies of the assistant's configuration are too large together", async () => {
    const { body: assistant } = await api.post<{ assistant_id: string }>("/assistants", {
      graph_id: "two-step",
      context: { text: "x".repeat(900_000) },
    });
    const before = (await api.post<number>("/threads/count", {})).body;
    const batchOf = (length: number) =>
      api.post<Refusal>(
        "/runs/batch",
        Array.from({ length }, () => ({ assistant_id: assistant.assistant_id, after_seconds: 3_600 })),
      );
    const refused = await batchOf(20);
    expect([refused.status, refused.body.detail]).toEqual([422, expect.stringContaining("send fewer")]);
    expect((await api.post<number>("/threads/count", {})).body).toBe(before);
    expect((await batchOf(2)).status).toBe(200);
  });

  test("creates none if one of them can't be stored", async () => {
    const before = (await api.post<number>("/threads/count", {})).body;
    const answer = await api.post<Refusal>("/runs/batch", [
      { ...TWO_STEP, on_completion: "keep" },
      { ...TWO_STEP, config: { configurable: { checkpoint_id: "1ef4a9b8-0000-6000-8000-000000000000" } } },
    ]);
    expect([answer.status, answer.body.detail]).toEqual([404, expect.stringContaining("Checkpoint")]);
    expect((await api.post<number>("/threads/count", {})).body).toBe(before);
  });

  test.each([[[]], [{}], [[{ input: {} }]]])("%j is refused", async (body) => {
    const answer = await api.post<Refusal>("/runs/batch", body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail).toEqual(expect.any(String));
  });
});
