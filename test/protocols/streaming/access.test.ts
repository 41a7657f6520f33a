import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import pg from "pg";
import WebSocket from "ws";
import type { Authorize } from "../../../src/access/authorize.ts";
import { grantVisibility } from "../../../src/access/visibility.ts";
import { forbidden } from "../../../src/platform/domain/errors.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { command, EVERYTHING, isRoot, openFrames, type FrameStream } from "./frames.ts";

/** Other users' threads over event streaming: a caller who may not see a thread learns nothing of it, not even that it exists. */

const KEYS = { me: "the-key-of-me", them: "the-key-of-them" };
type Owner = keyof typeof KEYS;
const idOf = (owner: Owner): string => createHash("sha256").update(KEYS[owner]).digest("hex").slice(0, 12);
const headersOf = (owner: Owner) => ({ "x-api-key": KEYS[owner], "content-type": "application/json" });

const authorize: Authorize = async (caller, resource, _action, value) =>
  caller.kind !== "key" || resource !== "threads"
    ? grantVisibility(resource, undefined, value)
    : grantVisibility(
        resource,
        (metadata, parameter) => `${metadata} ->> 'owner' = ${parameter(caller.id)}`,
        value,
      );

let server: TestServer;
const streams: Pick<FrameStream, "close">[] = [];
beforeAll(async () => {
  server = await startTestServer({ apiKeys: Object.values(KEYS), authorize });
});
afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});
afterAll(() => server.close());

const open = async (owner: Owner, threadId: string): Promise<FrameStream> => {
  const stream = await openFrames(server.url, threadId, { channels: EVERYTHING }, headersOf(owner));
  streams.push(stream);
  return stream;
};
const aThread = async (owner: Owner, threadId: string): Promise<void> => {
  const answer = await fetch(`${server.url}/threads`, {
    method: "POST",
    headers: headersOf(owner),
    body: JSON.stringify({ thread_id: threadId, metadata: { owner: idOf(owner) } }),
  });
  expect(answer.status).toBe(200);
};
const start = async (owner: Owner, threadId: string) =>
  await command(
    server.url,
    threadId,
    "run.start",
    { assistant_id: "two-step", input: saying("a secret") },
    headersOf(owner),
  );

test("a stream of a thread that does not exist yet receives its owner's events later, and none of another user's thread", async () => {
  const threadId = newId();
  const mine = await open("me", threadId);
  const theirs = await open("them", threadId);
  await aThread("them", threadId);
  await start("them", threadId);
  await theirs.until(isRoot("completed"));
  // An event of a visible thread shows that a hidden one would have arrived before.
  const own = newId();
  const other = await open("me", own);
  await aThread("me", own);
  await start("me", own);
  await other.until(isRoot("completed"));
  expect(mine.seen).toEqual([]);
  expect(mine.stream.seen).toEqual([]);
});

describe("a client that subscribes to its own thread", () => {
  const subscribing = {
    "over server-sent events": async (threadId: string): Promise<() => string> => {
      const { seen, until } = await open("me", threadId);
      void until(() => false).catch(() => undefined);
      return () => JSON.stringify(seen);
    },
    "over a WebSocket": async (threadId: string): Promise<() => string> => {
      const url = `${server.url.replace("http", "ws")}/threads/${threadId}/stream/events`;
      const socket = new WebSocket(url, { headers: headersOf("me") });
      streams.push({ close: () => socket.terminate() });
      let sent = "";
      socket.on("message", (data) => (sent += String(data as Buffer)));
      const params = { channels: EVERYTHING };
      socket.on("open", () =>
        socket.send(JSON.stringify({ id: 1, method: "subscription.subscribe", params })),
      );
      await eventually("the answer", () => sent.includes("subscription_id"));
      return () => sent;
    },
  };

  test.each(Object.entries(subscribing))(
    "%s is answered when the thread is followed, so a run that begins then is received",
    async (_how, subscribe) => {
      const threadId = newId();
      await aThread("me", threadId);
      const holder = new pg.Client({ connectionString: server.connectionString });
      await holder.connect();
      try {
        // The server can't read the thread now.
        await holder.query("begin; lock table threadloom.threads in access exclusive mode");
        let isAnswered = false;
        const subscribed = subscribe(threadId).finally(() => (isAnswered = true));
        await eventually("the thread to be queried", async () => {
          const [looks] = await query<{ count: number }>(
            server,
            `select count(*)::int from pg_stat_activity
             where wait_event_type = 'Lock' and query like 'select from threadloom.threads where thread_id%'`,
          );
          return (looks?.count ?? 0) > 0;
        });
        expect(isAnswered).toBe(false);
        await holder.query("commit");
        const sent = await subscribed;
        // Uses the wire of runs: event streaming sends such runs only to existing followers.
        await fetch(`${server.url}/threads/${threadId}/runs/wait`, {
          method: "POST",
          headers: headersOf("me"),
          body: JSON.stringify({ assistant_id: "two-step", input: saying("hello") }),
        });
        await eventually("the end of the run", () => sent().includes('"completed"'));
        expect(sent()).toContain('"method":"values"');
      } finally {
        await holder.end();
      }
    },
  );
});

test("commands to another user's thread answer as for a missing thread, or one that can't be created", async () => {
  const [threadId, missing] = [newId(), newId()];
  await aThread("them", threadId);
  await start("them", threadId);
  for (const [method, params] of [
    ["state.get", { namespace: [] }],
    ["state.listCheckpoints", {}],
    ["agent.getTree", {}],
    ["input.respond", { namespace: [], interrupt_id: "x", response: 1 }],
    ["state.fork", { checkpoint_id: missing }],
  ] as const) {
    const [hidden, none] = await Promise.all(
      [threadId, missing].map((id) => command(server.url, id, method, params, headersOf("me"))),
    );
    expect(JSON.stringify(hidden)).toBe(JSON.stringify(none).replaceAll(missing, threadId));
  }
  const { status, answer } = await start("me", threadId);
  expect([status, answer.type, answer.message]).toEqual([
    200,
    "error",
    `Thread '${threadId}' already exists.`,
  ]);
});

test("a socket of another user receives nothing of a thread, and answers as if the thread did not exist", async () => {
  const threadId = newId();
  await aThread("them", threadId);
  await start("them", threadId);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/threads/${threadId}/stream/events`, {
    headers: headersOf("me"),
  });
  const answers = new Promise<unknown[]>((resolve) => {
    const seen: unknown[] = [];
    socket.on("message", (data) => {
      seen.push(JSON.parse(String(data as Buffer)));
      if (seen.length === 2) resolve(seen);
    });
  });
  socket.on("open", () => {
    socket.send(
      JSON.stringify({ id: 1, method: "subscription.subscribe", params: { channels: EVERYTHING } }),
    );
    socket.send(JSON.stringify({ id: 2, method: "agent.getTree", params: {} }));
  });
  expect(await answers).toEqual([
    expect.objectContaining({ id: 1, type: "success" }),
    expect.objectContaining({ id: 2, error: "no_such_run" }),
  ]);
  socket.terminate();
});

test("a caller who may not read threads at all is refused before any answer, and with the close code of the socket", async () => {
  const refusing = await startTestServer({
    apiKeys: [KEYS.me],
    authorize: async (caller, resource, action, value) => {
      if (caller.kind === "key") throw forbidden("Not for you.");
      return await authorize(caller, resource, action, value);
    },
  });
  try {
    const path = `/threads/${newId()}/stream/events`;
    const answer = await fetch(`${refusing.url}${path}`, {
      method: "POST",
      headers: headersOf("me"),
      body: JSON.stringify({ channels: ["values"] }),
    });
    expect([answer.status, await answer.json()]).toEqual([403, { detail: "Not for you." }]);
    const socket = new WebSocket(`${refusing.url.replace("http", "ws")}${path}`, {
      headers: headersOf("me"),
    });
    const closed = await new Promise<[number, string]>((resolve) => {
      socket.on("close", (code, reason) => resolve([code, String(reason)]));
    });
    expect(closed).toEqual([4403, "Not for you."]);
  } finally {
    await refusing.close();
  }
});
