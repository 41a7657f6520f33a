import { afterAll, beforeAll, expect, it } from "vitest";
import { createRoom } from "../../../src/http/room.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";

/** All places are taken, so every read of a state waits. */

const room = createRoom({ places: 1 });
let waiting = 0;
const readRoom: typeof room = {
  ...room,
  async make(...asked) {
    waiting += 1;
    try {
      return await room.make(...asked);
    } finally {
      waiting -= 1;
    }
  },
};

let server: TestServer;
let thread: string;
let run: string;
let leave: () => void;
beforeAll(async () => {
  server = await startTestServer({ readRoom });
  thread = ((await server.client.post("/threads").send({})).body as { thread_id: string }).thread_id;
  const runs = `/threads/${thread}/runs`;
  const body = { assistant_id: "two-step", input: { messages: [] } };
  await server.client.post(`${runs}/wait`).send(body);
  [{ run_id: run }] = (await server.client.get(runs)).body as [{ run_id: string }];
  leave = await room.enter(undefined);
});
afterAll(async () => {
  leave();
  await server.close();
});

/** A place would be refused after 30 seconds. */
const SOON_MS = 10_000;

const command = { id: 1, method: "state.get", params: { namespace: [] } };

it.each([
  ["a thread", "", undefined],
  ["the state of a thread", "/state", undefined],
  ["the result of a run", "/runs/{run}/join", undefined],
  ["the state in event streaming", "/commands", command],
])("a caller who hangs up no longer waits for a place to read %s", async (_, path, body) => {
  const gone = new AbortController();
  const answer = fetch(`${server.url}/threads/${thread}${path.replace("{run}", run)}`, {
    signal: gone.signal,
    ...(body && {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  }).then((response) => response.text());
  answer.catch(() => undefined);
  await eventually("the request waits", () => waiting === 1);
  gone.abort();
  await eventually("nobody waits", () => waiting === 0, SOON_MS);
  await expect(answer).rejects.toThrow();
});
