import { describe, expect, test } from "vitest";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { saying, type Api, type Refusal } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import {
  namesOf,
  openStream,
  readStream,
  type EventStream,
  type SentEvent,
} from "../../helpers/server-sent-events.ts";
import { onTwoServers } from "../../helpers/servers.ts";

const TEN_STEPS = { assistant_id: "ten-steps", input: {}, stream_mode: ["values", "updates"] };
/** Metadata, ten updates, ten values: an empty input adds no event of its own. */
const TEN_STEPS_EVENTS = 21;
const TICKING = { assistant_id: "sleep", input: { milliseconds: 600_000 }, stream_mode: "custom" };
const RESUMABLE = { stream_resumable: true };

let server: TestServer;
let replica: TestServer;
let api: Api;
let other: Api;
onTwoServers((servers) => ({ server, replica, api, other } = servers));

const streamOf = (place: { url: string }, run: RunRecord): string =>
  `${place.url}/threads/${run.thread_id}/runs/${run.run_id}/stream`;
const after = (id: number) => ({ headers: { "last-event-id": String(id) } });
const framesOf = (events: readonly SentEvent[]) => events.map(({ frame }) => frame);

const created = async (
  place: { url: string },
  body: object,
): Promise<{ stream: EventStream; run: RunRecord }> => {
  const threadId = await api.aThread();
  const stream = await openStream(`${place.url}/threads/${threadId}/runs/stream`, { body });
  const runId = stream.headers.get("content-location")?.split("/").at(-1) ?? "";
  return { stream, run: await api.run(threadId, runId) };
};

const places = [
  ["the server that executed it", () => server],
  ["another server", () => replica],
] as const;

describe.each(places)("a resumable run, read from %s", (_, place) => {
  test("is replayed after its end, from the start with -1, and after any event with that event's id", async () => {
    const { stream, run } = await created(server, { ...TEN_STEPS, ...RESUMABLE });
    const all = framesOf(await stream.rest());
    expect(all).toHaveLength(TEN_STEPS_EVENTS);
    expect(framesOf(await readStream(streamOf(place(), run), after(-1)))).toEqual(all);
    for (const id of [0, 7, TEN_STEPS_EVENTS - 2, TEN_STEPS_EVENTS - 1]) {
      expect(framesOf(await readStream(streamOf(place(), run), after(id)))).toEqual(all.slice(id + 1));
    }
  });

  test("sends nothing after an id beyond its last event, and ends cleanly", async () => {
    const { stream, run } = await created(server, { ...TEN_STEPS, ...RESUMABLE });
    await stream.rest();
    const beyond = await openStream(streamOf(place(), run), after(TEN_STEPS_EVENTS + 1_000));
    expect(beyond.status).toBe(200);
    expect(await beyond.rest()).toEqual([]);
  });

  test("is replayed even if it had no reader while it ran", async () => {
    const run = await api.aRun(await api.aThread(), { ...TEN_STEPS, ...RESUMABLE });
    await api.join(run.thread_id, run.run_id);
    const events = await readStream(streamOf(place(), run), after(-1));
    expect(events.map(({ id }) => id)).toEqual(Array.from({ length: TEN_STEPS_EVENTS }, (_, index) => index));
  });

  test("is replayed and then followed while it runs", async () => {
    const { stream, run } = await created(server, { ...TICKING, ...RESUMABLE });
    await stream.until(({ id }) => id === 3);
    const reader = await openStream(streamOf(place(), run), after(-1));
    await reader.until(({ id }) => id === 6);
    const late = await openStream(streamOf(place(), run), after(4));
    await late.until(({ id }) => id === 7);
    await api.cancel(run.thread_id, run.run_id);
    const [whole, replayed, rest] = [await stream.rest(), await reader.rest(), await late.rest()];
    expect(framesOf(replayed)).toEqual(framesOf(whole));
    expect(framesOf(rest)).toEqual(framesOf(whole).slice(5));
    expect(whole.map(({ id }) => id)).toEqual(whole.map((_, index) => index));
  });

  test("keeps its events if a reader arrives before the first one", async () => {
    const threadId = await api.aThread();
    const blocker = await api.aRun(threadId, TICKING);
    const waiting = await api.aRun(threadId, { ...TEN_STEPS, ...RESUMABLE });
    const early = await openStream(streamOf(place(), waiting));
    await api.cancel(threadId, blocker.run_id);
    await api.join(threadId, waiting.run_id);
    const all = framesOf(await readStream(streamOf(place(), waiting), after(-1)));
    expect(all).toHaveLength(TEN_STEPS_EVENTS);
    expect(framesOf(await early.rest())).toEqual(all);
  });
});

describe("several readers", () => {
  test.each([
    ["a run", {}],
    ["a resumable run", RESUMABLE],
  ])("of %s each receive every event, on both servers", async (_, more) => {
    const threadId = await api.aThread();
    const blocker = await api.aRun(threadId, TICKING);
    const run = await api.aRun(threadId, { ...TEN_STEPS, ...more });
    const readers = await Promise.all(
      Array.from({ length: 6 }, (_, index) => openStream(streamOf(index % 2 === 0 ? server : replica, run))),
    );
    await api.cancel(threadId, blocker.run_id);
    const all = await Promise.all(readers.map((reader) => reader.rest()));
    for (const events of all) {
      expect(events.map(({ id }) => id)).toEqual(
        Array.from({ length: TEN_STEPS_EVENTS }, (_, index) => index),
      );
      expect(framesOf(events)).toEqual(framesOf(all[0] ?? []));
    }
  });

  test("may leave without effect on the other readers or the run", async () => {
    const { stream, run } = await created(server, { ...TICKING, on_disconnect: "continue" });
    const [one, two] = [await openStream(streamOf(server, run)), await openStream(streamOf(replica, run))];
    await stream.until(({ id }) => id === 2);
    await one.next();
    await two.next();
    stream.close();
    one.close();
    const seen = two.seen.at(-1)?.id ?? 0;
    await two.until(({ id }) => (id ?? 0) > seen + 2);
    expect(await api.run(run.thread_id, run.run_id)).toMatchObject({ status: "running" });
  });
});

describe("a run that is not resumable", () => {
  test("can be resumed by a disconnected reader at the server that executes it", async () => {
    const { stream, run } = await created(server, { ...TICKING, on_disconnect: "continue" });
    await stream.until(({ id }) => id === 2);
    stream.close();
    const again = await openStream(streamOf(server, run), after(2));
    expect((await again.next())?.id).toBe(3);
    const replay = await openStream(streamOf(server, run), after(-1));
    expect(await replay.next()).toMatchObject({ id: 0, event: "metadata" });
  });

  test("can be resumed shortly after its end by a reader who was disconnected just before", async () => {
    const { stream, run } = await created(server, TEN_STEPS);
    const all = await stream.rest();
    const again = await readStream(streamOf(server, run), after(10));
    expect(framesOf(again)).toEqual(framesOf(all).slice(11));
  });

  test("sends a reader without Last-Event-ID its metadata and then new events", async () => {
    const { stream, run } = await created(server, { ...TICKING, on_disconnect: "continue" });
    await stream.until(({ id }) => id === 4);
    const joined = await openStream(streamOf(server, run));
    expect(await joined.next()).toMatchObject({ event: "metadata", id: 0 });
    expect((await joined.next())?.id).toBeGreaterThanOrEqual(4);
  });

  test("begins with its metadata also if it had no reader so far", async () => {
    const run = await api.aRun(await api.aThread(), TICKING);
    await api.untilRunIs(run.thread_id, run.run_id, "running");
    const joined = await openStream(streamOf(server, run));
    expect(await joined.next()).toMatchObject({ event: "metadata", id: 0 });
  });

  test("is streamed on another server while it runs", async () => {
    const run = await api.aRun(await api.aThread(), TICKING);
    await api.untilRunIs(run.thread_id, run.run_id, "running");
    const joined = await openStream(streamOf(replica, run));
    expect(await joined.next()).toMatchObject({ event: "metadata", id: 0 });
    const events = [await joined.next(), await joined.next(), await joined.next()];
    const [first] = events;
    expect(events.map((event) => event?.id)).toEqual([0, 1, 2].map((step) => (first?.id ?? 0) + step));
  });

  test.each([RESUMABLE, {}])(
    "begins with its metadata on another server, too, for each reader that joins there in the middle (%j)",
    async (resumable) => {
      const { stream, run } = await created(server, {
        ...TICKING,
        ...resumable,
        on_disconnect: "continue",
      });
      await stream.until(({ id }) => id === 4);
      for (let reader = 0; reader < 2; reader += 1) {
        const joined = await openStream(streamOf(replica, run));
        expect(await joined.next()).toMatchObject({
          event: "metadata",
          id: 0,
          data: { run_id: run.run_id, attempt: 1 },
        });
        expect((await joined.next())?.event).toBe("custom");
        await joined.until(({ id = 0 }) => id > 6);
      }
    },
  );

  test("streams from another server that only created it", async () => {
    const { stream, run } = await created(replica, TEN_STEPS);
    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(Array.from({ length: TEN_STEPS_EVENTS }, (_, index) => index));
    expect(await other.run(run.thread_id, run.run_id)).toMatchObject({ status: "success" });
  });

  test("streams the error from another server", async () => {
    const { stream } = await created(replica, {
      assistant_id: "failing",
      input: saying("go"),
      stream_mode: "updates",
    });
    expect(namesOf(await stream.rest())).toEqual(["metadata", "updates", "error"]);
  });

  test("that ended long ago has a stream that ends", async () => {
    const run = await api.aRun(await api.aThread(), { assistant_id: "counter", input: {} });
    await api.join(run.thread_id, run.run_id);
    for (const place of [server, replica]) expect(await readStream(streamOf(place, run))).toEqual([]);
  });
});

describe("Last-Event-ID", () => {
  test.each(["abc", "1.5", "--1", "99999999999999999999"])(
    "%j is refused with a message that names the header",
    async (id) => {
      const run = await api.aRun(await api.aThread(), { assistant_id: "counter", input: {} });
      const response = await fetch(streamOf(server, run), { headers: { "last-event-id": id } });
      expect(response.status).toBe(422);
      expect(((await response.json()) as Refusal).detail).toContain("Last-Event-ID");
    },
  );
});

describe("the heartbeat", () => {
  test("is sent every five seconds while the run is quiet, and is not an event", async () => {
    const threadId = await api.aThread();
    const blocker = await api.aRun(threadId, TICKING);
    const waiting = await api.aRun(threadId, { ...TEN_STEPS });
    const start = performance.now();
    const streams = [
      await openStream(streamOf(server, waiting)),
      await openStream(streamOf(replica, waiting)),
    ];
    const comments = await Promise.all(streams.map((stream) => stream.comment()));
    expect(comments).toEqual(["heartbeat", "heartbeat"]);
    // Proxies close an idle connection after a minute; the margin is for a busy machine.
    expect(performance.now() - start).toBeLessThan(45_000);
    await api.cancel(threadId, blocker.run_id);
    for (const stream of streams) {
      const events = await stream.rest();
      expect(events.map(({ id }) => id)).toEqual(
        Array.from({ length: TEN_STEPS_EVENTS }, (_, index) => index),
      );
    }
  });
});

test("the stream of a thread that is deleted ends", async () => {
  const { stream, run } = await created(server, TICKING);
  const remote = await openStream(streamOf(replica, run));
  await stream.until(({ id }) => id === 1);
  await api.remove(`/threads/${run.thread_id}`);
  const over = async (reader: EventStream) => await reader.rest().catch(() => "cut");
  await eventually("both readers are let go", async () => {
    await Promise.all([over(stream), over(remote)]);
    return true;
  });
});
