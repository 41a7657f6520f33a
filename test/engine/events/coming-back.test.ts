import { describe, expect, test } from "vitest";
import { saying, type Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { namesOf, openStream, readStream } from "../../helpers/server-sent-events.ts";
import { onTwoServers } from "../../helpers/servers.ts";

let server: TestServer;
let replica: TestServer;
let api: Api;
onTwoServers((servers) => ({ server, replica, api } = servers));

const places = [
  ["the server that executed it", () => server],
  ["another server", () => replica],
] as const;
const TEN_STEPS = { assistant_id: "ten-steps", input: {}, stream_mode: "updates", on_disconnect: "continue" };

describe.each(places)(
  "a client that lost its stream before the first event and reconnects at %s",
  (_, place) => {
    test.each([{ stream_resumable: true }, {}])(
      "receives everything from the position in `Location` (%j)",
      async (more) => {
        const threadId = await api.aThread();
        const blocker = await api.aRun(threadId, {
          assistant_id: "sleep",
          input: { milliseconds: 600_000 },
        });
        const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
          body: { ...TEN_STEPS, ...more },
        });
        const location = stream.headers.get("location") ?? "";
        expect(stream.seen).toEqual([]);
        stream.close();
        // The client returns long after the run began.
        await api.cancel(threadId, blocker.run_id);
        await api.untilQuiet(threadId);
        if (place() === replica && !("stream_resumable" in more)) return; // only a log outlives its process
        const events = await readStream(`${place().url}${location}`);
        expect(namesOf(events)).toEqual(["metadata", ...Array<string>(10).fill("updates")]);
        expect(events.map(({ id }) => id)).toEqual(events.map((_event, index) => index));
      },
    );
  },
);

describe("the header Location", () => {
  test("keeps the query of a joined stream", async () => {
    const run = await api.aRun(await api.aThread(), TEN_STEPS);
    await api.join(run.thread_id, run.run_id);
    const path = `/threads/${run.thread_id}/runs/${run.run_id}/stream`;
    const locationOf = async (query: string, headers = {}): Promise<string | null> => {
      const stream = await openStream(`${server.url}${path}${query}`, { headers });
      await stream.rest();
      return stream.headers.get("location");
    };
    expect(await locationOf("")).toBe(path);
    expect(await locationOf("?stream_mode=updates&stream_mode=values")).toBe(
      `${path}?stream_mode=updates&stream_mode=values`,
    );
    expect(await locationOf("?stream_mode=updates&last_event_id=3")).toBe(
      `${path}?stream_mode=updates&last_event_id=3`,
    );
    expect(await locationOf("?last_event_id=3", { "last-event-id": "7" })).toBe(`${path}?last_event_id=7`);
  });

  test.each(["-2", "abc", "1.5"])(
    "is not used with 'last_event_id=%s', which is refused by name",
    async (id) => {
      const run = await api.aRun(await api.aThread(), TEN_STEPS);
      const answer = await api.get<{ detail: string }>(
        `/threads/${run.thread_id}/runs/${run.run_id}/stream?last_event_id=${id}`,
      );
      expect(answer.status).toBe(422);
      expect(answer.body.detail).toContain("last_event_id");
    },
  );
});

describe.each(places)("a failed run that is joined afterwards at %s", (_, place) => {
  test.each([{ stream_resumable: true }, {}])("shows its error (%j)", async (more) => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, {
      assistant_id: "failing",
      input: saying("go"),
      stream_mode: "updates",
      ...more,
    });
    const { __error__: error } = await api.join(threadId, run.run_id);
    const url = `${place().url}/threads/${threadId}/runs/${run.run_id}/stream`;
    const joined = await readStream(url);
    expect(namesOf(joined).at(-1)).toBe("error");
    expect(joined.at(-1)?.data).toEqual(error);
    expect(namesOf(joined).filter((name) => name === "error")).toHaveLength(1);
    // A client that has received the error does not receive it again.
    const last = String(joined.at(-1)?.id);
    if ("stream_resumable" in more) {
      expect(await readStream(url, { headers: { "last-event-id": last } })).toEqual([]);
      const replayed = await readStream(url, { headers: { "last-event-id": "-1" } });
      expect(namesOf(replayed)).toEqual(["metadata", "updates", "error"]);
    }
  });
});

test("a run that succeeded ends without an error", async () => {
  const run = await api.aRun(await api.aThread(), TEN_STEPS);
  await api.join(run.thread_id, run.run_id);
  const events = await readStream(`${replica.url}/threads/${run.thread_id}/runs/${run.run_id}/stream`);
  expect(namesOf(events)).not.toContain("error");
});
