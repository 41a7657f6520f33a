import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { hashOf, idOf, makeKey } from "../../../src/access/keys/key-text.ts";
import { createKeyRepository, type KeyRepository } from "../../../src/access/keys/repository.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { directory } from "./directory.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/** Streams, WebSockets and waiting requests that are open while their caller loses access. */

const KEY = "an-operators-key";
/** Longer than each test takes: a connection that ends before was ended by the server. */
const LONG_MS = 30_000;
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("langgraph.json", import.meta.url)),
    apiKeys: [KEY],
    accessCheckSeconds: 1,
    jobsPerWorker: 50,
  });
});
afterAll(async () => {
  await server.close();
});
const leaving: (() => void)[] = [];
let count = 0;
/** A token of the user that no other test uses. */
const tokenOf = (name: string): string => `${name}-${(count += 1)}`;
beforeEach(() => {
  directory.expired.clear();
  directory.barred.clear();
  directory.isAway = false;
  directory.isUnreachable = false;
});
afterEach(() => {
  for (const leave of leaving.splice(0)) leave();
});

const by = (token: string) => ({ authorization: `Bearer ${token}` });
const clientOf = (token: string): Client =>
  new Client({ apiUrl: server.url, apiKey: null, defaultHeaders: by(token) });
const operator = (): Client => new Client({ apiUrl: server.url, apiKey: KEY });

/** The text that a connection received, and how it ended. */
interface Connection {
  received: string;
  end: string | undefined;
}

const follow = async (url: string, headers: Record<string, string>, body?: unknown): Promise<Connection> => {
  const stream = await openStream(url, { headers, ...(body === undefined ? {} : { body }) });
  leaving.push(() => stream.close());
  const connection: Connection = { received: "", end: undefined };
  void (async () => {
    try {
      for (let event = await stream.next(); event !== undefined; event = await stream.next())
        connection.received += `${event.frame}\n\n`;
      connection.end = "clean";
    } catch {
      connection.end = "cut";
    }
  })();
  return connection;
};

const streaming = async (path: string, token: string, body?: unknown): Promise<Connection> =>
  await follow(`${server.url}${path}`, by(token), body);

const socketAt = async (
  url: string,
  threadId: string,
  headers: Record<string, string>,
): Promise<Connection> => {
  const socket = new WebSocket(`${url.replace("http", "ws")}/threads/${threadId}/stream/events`, { headers });
  leaving.push(() => socket.terminate());
  const connection: Connection = { received: "", end: undefined };
  socket.on("message", (data) => (connection.received += String(data as Buffer)));
  socket.on("close", (code, reason) => (connection.end = `${code} ${String(reason)}`));
  await once(socket, "open");
  socket.send(JSON.stringify({ id: 1, method: "subscription.subscribe", params: { channels: ["custom"] } }));
  await eventually("the subscription to be there", () => connection.received !== "");
  return connection;
};

const socketOf = async (threadId: string, token: string): Promise<Connection> =>
  await socketAt(server.url, threadId, by(token));

/** Waits for the headers of the answer: before them, a caller who has lost access is refused. */
const joining = async (threadId: string, runId: string, token: string): Promise<Connection> => {
  const connection: Connection = { received: "", end: undefined };
  const leave = new AbortController();
  leaving.push(() => leave.abort());
  const answer = await fetch(`${server.url}/threads/${threadId}/runs/${runId}/join`, {
    headers: by(token),
    signal: leave.signal,
  });
  void answer
    .text()
    .then((text) => {
      connection.received = text;
      connection.end = String(answer.status);
    })
    .catch(() => (connection.end = "left"));
  return connection;
};

const SLEEP = {
  assistant_id: "sleep",
  input: { milliseconds: LONG_MS },
  stream_mode: ["custom"],
  on_disconnect: "continue",
};

/** The body of a waiting request whose caller has lost access; its headers were sent before. */
const accessLost = (message: string) => ({ __error__: { error: "AccessLost", message } });

/** One connection of each kind on one thread, with a run that emits ten events a second. */
const openAll = async (token: string) => {
  const { thread_id: threadId } = await clientOf(token).threads.create();
  const path = `/threads/${threadId}`;
  // The server creates protocol events only for connected readers, so this stream is opened first.
  const events = await streaming(`${path}/stream/events`, token, { channels: ["custom"] });
  const socket = await socketOf(threadId, token);
  const thread = await streaming(`${path}/stream`, token);
  const created = await streaming(`${path}/runs/stream`, token, SLEEP);
  await eventually("the run to emit an event", () => created.received.includes("tick"));
  const [run] = await clientOf(token).runs.list(threadId);
  const runId = run?.run_id ?? "";
  const waiting = await joining(threadId, runId, token);
  const joined = await streaming(`${path}/runs/${runId}/stream`, token);
  const streams = { created, joined, thread, events, socket };
  await eventually("each connection to receive an event", () =>
    Object.values(streams).every(({ received }) => received.includes("tick")),
  );
  return { threadId, runId, all: { ...streams, waiting } };
};

const endsOf = (all: Record<string, Connection>) =>
  Object.fromEntries(Object.entries(all).map(([name, { end }]) => [name, end]));
const haveEnded = async (all: Record<string, Connection>): Promise<void> => {
  await eventually("all connections to end", () => Object.values(all).every(({ end }) => end !== undefined));
};
const lastOf = ({ received }: Connection): string =>
  /id: [^\n]*\n(.*)\n\n$/s.exec(received.slice(received.lastIndexOf("\nid: ")))?.[1] ?? "";

describe("connections of users of the project's own Auth", () => {
  test("end with a reason and no further event when the token expires; those of others continue", async () => {
    const [alice, bob] = [tokenOf("alice"), tokenOf("bob")];
    const [{ all }, others] = [await openAll(alice), await openAll(bob)];
    directory.expired.add(alice);
    await haveEnded(all);
    expect(endsOf(all)).toEqual({
      created: "clean",
      joined: "clean",
      thread: "clean",
      events: "cut",
      socket: "1008 The token has expired.",
      waiting: "200",
    });
    const loss = 'event: error\ndata: {"error":"AccessLost","message":"The token has expired."}';
    expect([all.created, all.joined, all.thread].map(lastOf)).toEqual([loss, loss, loss]);
    expect(JSON.parse(all.waiting.received)).toEqual(accessLost("The token has expired."));
    const before = others.all.socket.received.length;
    await eventually(
      "the other user to receive more",
      () => others.all.socket.received.length > before + 500,
    );
    expect(Object.values(endsOf(others.all))).toEqual(Array.from({ length: 6 }, () => undefined));
  });

  test("end when the handler refuses the user", async () => {
    const { all } = await openAll(tokenOf("carol"));
    directory.barred.add("carol");
    await haveEnded(all);
    expect(all.socket.end).toBe("1008 You may not do this.");
    expect(lastOf(all.created)).toContain("You may not do this.");
    expect(JSON.parse(all.waiting.received)).toEqual(accessLost("You may not do this."));
  });

  test("receive nothing more once the thread belongs to another user, and end with the text for a missing run", async () => {
    const { threadId, runId, all } = await openAll(tokenOf("dora"));
    await operator().threads.update(threadId, { metadata: { owner: "erin" } });
    await haveEnded(all);
    expect(all.socket.end).toBe(`1008 Thread '${threadId}' not found.`);
    expect(lastOf(all.joined)).toContain(`Run '${runId}' not found.`);
    expect(JSON.parse(all.waiting.received)).toEqual(accessLost(`Run '${runId}' not found.`));
    // The server disconnected the creator; the run belongs to the thread.
    expect((await operator().runs.get(threadId, runId)).status).toBe("running");
  });

  test("a run continues when its creator loses access, also with on_disconnect cancel", async () => {
    const token = tokenOf("frank");
    const { thread_id } = await clientOf(token).threads.create();
    const created = await streaming(`/threads/${thread_id}/runs/stream`, token, {
      ...SLEEP,
      on_disconnect: "cancel",
    });
    await eventually("the run to emit an event", () => created.received.includes("tick"));
    directory.expired.add(token);
    await haveEnded({ created });
    const [run] = await operator().runs.list(thread_id);
    expect(run?.status).toBe("running");
  });

  test("accept no commands over a socket once access is lost", async () => {
    const token = tokenOf("gina");
    const { thread_id } = await clientOf(token).threads.create();
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/threads/${thread_id}/stream/events`, {
      headers: by(token),
    });
    leaving.push(() => socket.terminate());
    let closed: number | undefined;
    socket.on("close", (code) => (closed = code));
    await once(socket, "open");
    directory.expired.add(token);
    const before = directory.shown.get(token) ?? 0;
    const start = { id: 1, method: "run.start", params: { assistant_id: "agent", input: {} } };
    await eventually("the socket to be closed", () => {
      // This also covers the time between the closing of the two sides.
      if ((directory.shown.get(token) ?? 0) > before) socket.send(JSON.stringify(start), () => undefined);
      return closed !== undefined;
    });
    expect(closed).toBe(1_008);
    expect(await operator().runs.list(thread_id)).toEqual([]);
  });

  test.each([
    ["answers 503", "isAway"],
    ["can't be reached, which the handler lets pass as it comes", "isUnreachable"],
  ] as const)("continue while the directory %s, and end if it stays so", async (_how, fault) => {
    const token = tokenOf("hanna");
    const { all } = await openAll(token);
    const shown = (): number => directory.shown.get(token) ?? 0;
    directory[fault] = true;
    const before = shown();
    await eventually("two rounds to fail", () => shown() >= before + 2);
    directory[fault] = false;
    await eventually("a round to pass", () => shown() >= before + 3);
    expect(Object.values(endsOf(all))).toEqual(Array.from({ length: 6 }, () => undefined));
    directory[fault] = true;
    await haveEnded(all);
    expect(JSON.parse(all.waiting.received)).toMatchObject({ __error__: { error: "AccessLost" } });
  });
});

describe("connections to a thread whose new owner starts a run before the next authorization check", () => {
  let slow: TestServer;
  beforeAll(async () => {
    slow = await startTestServer({
      graphConfigFile: fileURLToPath(new URL("langgraph.json", import.meta.url)),
      apiKeys: [KEY],
      accessCheckSeconds: 3_600,
    });
  });
  afterAll(async () => {
    await slow.close();
  });

  test("end with a reason, and receive nothing of that run", async () => {
    const [old, next] = [tokenOf("nora"), tokenOf("olga")];
    const by = (token: string) => ({ authorization: `Bearer ${token}` });
    const clientOf = (token: string): Client =>
      new Client({ apiUrl: slow.url, apiKey: null, defaultHeaders: by(token) });
    const { thread_id: threadId } = await clientOf(old).threads.create();
    const all = {
      thread: await follow(`${slow.url}/threads/${threadId}/stream`, by(old)),
      events: await follow(`${slow.url}/threads/${threadId}/stream/events`, by(old), {
        channels: ["custom"],
      }),
      socket: await socketAt(slow.url, threadId, by(old)),
    };
    const run = async (token: string, milliseconds: number): Promise<string> => {
      const { runs } = clientOf(token);
      const { run_id: runId } = await runs.create(threadId, "sleep", {
        input: { milliseconds },
        streamMode: ["custom"],
      });
      await runs.join(threadId, runId);
      return runId;
    };
    // A reader that had not seen the thread before the handover waits for it, and has lost no access.
    await eventually("each connection to receive an event of a run", async () => {
      await run(old, 400);
      return Object.values(all).every(({ received }) => received.includes("tick"));
    });
    const operator = new Client({ apiUrl: slow.url, apiKey: KEY });
    await operator.threads.update(threadId, { metadata: { owner: "olga" } });
    const runId = await run(next, 400);
    await haveEnded(all);
    expect(endsOf(all)).toEqual({
      thread: "clean",
      events: "cut",
      socket: `1008 Thread '${threadId}' not found.`,
    });
    const loss = `event: error\ndata: {"error":"AccessLost","message":"Thread '${threadId}' not found."}`;
    expect(lastOf(all.thread)).toBe(loss);
    expect(all.thread.received).not.toContain(runId);
    expect(all.events.received).not.toContain(runId);
    expect(all.socket.received).not.toContain(runId);
  });
});

describe("API keys", () => {
  let keyed: TestServer;
  let database: Database;
  let repository: KeyRepository;
  beforeAll(async () => {
    keyed = await startTestServer({ jobsPerWorker: 50 });
    database = openTestDatabase(keyed.connectionString);
    repository = createKeyRepository(database);
  });
  afterAll(async () => {
    await database.close();
    await keyed.close();
  });

  const create = async (name: string): Promise<{ key: string; id: string }> => {
    const key = makeKey();
    const hash = hashOf(key);
    await repository.insert({
      keyId: idOf(hash),
      keyHash: hash,
      name,
      scopes: ["run"],
      expiresInSeconds: undefined,
    });
    return { key, id: idOf(hash) };
  };
  const created = async (headers: Record<string, string>): Promise<Connection> =>
    await follow(`${keyed.url}/runs/stream`, headers, SLEEP);

  test("the first key ends anonymous connections, and revoking a key ends its connections and no others", async () => {
    const open = await created({});
    await eventually("the run to emit an event", () => open.received.includes("tick"));
    const [kept, revoked] = [await create("kept"), await create("revoked")];
    await haveEnded({ open });
    expect(lastOf(open)).toContain("This server needs an API key");

    const own = await created({ "x-api-key": kept.key });
    const lost = await created({ "x-api-key": revoked.key });
    const socket = await socketAt(keyed.url, newId(), { "x-api-key": revoked.key });
    await eventually("both to receive an event", () =>
      [own, lost].every(({ received }) => received.includes("tick")),
    );
    await repository.revoke(revoked.id);
    await haveEnded({ lost, socket });
    expect(lastOf(lost)).toContain("The API key is not known to this server.");
    expect(socket.end).toBe("1008 The API key is not known to this server.");
    expect(own.end).toBeUndefined();
  });
});
