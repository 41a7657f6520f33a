import { expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";

let server: TestServer;
let api: Api;
onServer({ jobsPerWorker: 2 }, (opened) => ({ server, api } = opened));

const STREAMS = 40;

test("streams of runs that waited for a slot end cleanly with their last event, and nothing is logged for them", async () => {
  const threads = await Promise.all(Array.from({ length: STREAMS }, () => api.aThread()));
  const streams = await Promise.all(
    threads.map((threadId) =>
      openStream(`${server.url}/threads/${threadId}/runs/stream`, {
        body: { assistant_id: "ten-steps", input: {}, stream_mode: "updates" },
      }),
    ),
  );
  // `rest` rejects if the connection is cut.
  const events = await Promise.all(streams.map((stream) => stream.rest()));
  expect(events.map((ofOne) => ofOne.length)).toEqual(Array<number>(STREAMS).fill(11));
  expect(await query(server, "select from threadloom.run_events")).toEqual([]);
});
