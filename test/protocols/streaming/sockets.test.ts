import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import pg from "pg";
import WebSocket from "ws";
import { newId } from "../../../src/platform/lib/ids.ts";
import { apiOf, saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { startTcpProxy } from "../../helpers/tcp-proxy.ts";
import { EVERYTHING, isRoot, openFrames, type CommandAnswer, type Frame } from "./frames.ts";

/** Event streaming over a WebSocket: commands go in, answers and frames come out. */

const KEY = "canary-77aa (with) spaces";
let server: TestServer;
let locked: TestServer;
const sockets: WebSocket[] = [];
beforeAll(async () => {
  server = await startTestServer();
  locked = await startTestServer({ apiKeys: [KEY] });
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.terminate();
});
afterAll(async () => {
  await server.close();
  await locked.close();
});

type Message = Frame | CommandAnswer;

const addressOf = ({ url }: TestServer, threadId: string): string =>
  `${url.replace("http", "ws")}/threads/${threadId}/stream/events`;

const aSocket = async (address: string, protocols: string[] = [], headers: Record<string, string> = {}) => {
  const socket = new WebSocket(address, protocols, { headers });
  sockets.push(socket);
  const seen: Message[] = [];
  let wake: () => void = () => undefined;
  socket.on("message", (data) => {
    seen.push(JSON.parse(String(data as Buffer)) as Message);
    wake();
  });
  await once(socket, "open");
  const until = async (matches: (message: Message) => boolean): Promise<Message> => {
    for (;;) {
      const found = seen.find(matches);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  let ids = 0;
  return {
    socket,
    seen,
    frames: () => seen.filter((message): message is Frame => message.type === "event"),
    until,
    async command(method: string, params: object): Promise<CommandAnswer> {
      ids += 1;
      const id = ids;
      socket.send(JSON.stringify({ id, method, params }));
      return (await until((message) => message.type !== "event" && message.id === id)) as CommandAnswer;
    },
  };
};
const isEnd = (message: Message): boolean => message.type === "event" && isRoot("completed")(message);
const aTurn = { assistant_id: "two-step", input: saying("hello") };

describe("a socket", () => {
  test("receives the same as a stream of server-sent events, number by number", async () => {
    const threadId = newId();
    const stream = await openFrames(server.url, threadId);
    const client = await aSocket(addressOf(server, threadId));
    const { type, result } = await client.command("subscription.subscribe", { channels: EVERYTHING });
    expect([type, typeof result?.["subscription_id"]]).toEqual(["success", "string"]);
    const started = await client.command("run.start", aTurn);
    expect(started).toMatchObject({ type: "success", meta: { thread_id: threadId, applied_through_seq: 0 } });
    await client.until(isEnd);
    await stream.until(isRoot("completed"));
    // The start of a run is announced to the two at different moments.
    const withoutTime = (frames: Frame[]) =>
      frames.map(({ params: { timestamp: _, ...params }, ...frame }) => ({ ...frame, params }));
    expect(withoutTime(client.frames())).toEqual(withoutTime(stream.seen));
    stream.close();
  });

  test("has several subscriptions, each with channels of its own, until it ends one", async () => {
    const threadId = newId();
    const client = await aSocket(addressOf(server, threadId));
    const values = await client.command("subscription.subscribe", { channels: ["values"] });
    await client.command("subscription.subscribe", { channels: ["lifecycle"] });
    await client.command("run.start", aTurn);
    await client.until(isEnd);
    expect(new Set(client.frames().map(({ method }) => method))).toEqual(new Set(["values", "lifecycle"]));
    const { subscription_id } = values.result as { subscription_id: string };
    expect(await client.command("subscription.unsubscribe", { subscription_id })).toMatchObject({
      type: "success",
    });
    expect(await client.command("subscription.unsubscribe", { subscription_id })).toMatchObject({
      type: "error",
      error: "no_such_subscription",
    });
    const before = client.frames().length;
    const { result } = await client.command("run.start", aTurn);
    await client.until(
      (message) => message.type === "event" && message.event_id === `synth:${result?.run_id}:completed`,
    );
    expect(
      client
        .frames()
        .slice(before)
        .every(({ method }) => method === "lifecycle"),
    ).toBe(true);
  });

  test("counts in the server's metrics until it is closed, and so does each of its streams", async () => {
    const figures = async () => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      return ["event_streams", "websockets"].map((name) =>
        Number(new RegExp(`\\nthreadloom_${name} (\\d+)\\n`).exec(text)?.[1]),
      );
    };
    const become = async (streams: number, open: number) =>
      await eventually(`${streams} streams and ${open} sockets`, async () => {
        const [first, second] = await figures();
        return first === streams && second === open;
      });
    await become(0, 0);
    const client = await aSocket(addressOf(server, newId()));
    await become(0, 1);
    await client.command("subscription.subscribe", { channels: ["values"] });
    const { result } = await client.command("subscription.subscribe", { channels: ["lifecycle"] });
    const stream = await openFrames(server.url, newId());
    await become(3, 1);
    await client.command("subscription.unsubscribe", { subscription_id: result?.["subscription_id"] });
    stream.close();
    await become(1, 1);
    client.socket.terminate();
    await become(0, 0);
  });

  test("answers a message that is not a command, and stays open", async () => {
    const client = await aSocket(addressOf(server, newId()));
    for (const text of ["", "no JSON", "[]", "null", '{"id":"1","method":"run.start"}', '{"__proto__":{}}']) {
      const before = client.seen.length;
      client.socket.send(text);
      await client.until((message) => client.seen.indexOf(message) >= before);
      expect(client.seen.at(-1)).toMatchObject({ type: "error", id: null, error: "invalid_argument" });
    }
    expect(await client.command("no.such", {})).toMatchObject({ type: "error", error: "unknown_command" });
    expect(await client.command("subscription.subscribe", { channels: "values" })).toMatchObject({
      error: "invalid_argument",
    });
    expect(await client.command("run.start", { assistant_id: "nobody" })).toMatchObject({
      error: "invalid_argument",
    });
  });

  test("receives temporary errors like HTTP while the database is away, and no server error is logged", async () => {
    const proxy = await startTcpProxy(server.connectionString);
    const cut = await startTestServer({ connectionString: proxy.connectionString });
    try {
      const client = await aSocket(addressOf(cut, newId()));
      await proxy.close();
      // A connection that breaks during a statement causes a retry; then no connection is available.
      const answer = await client.command("run.start", aTurn);
      expect(answer).toMatchObject({
        type: "error",
        error: "unknown_error",
        message: "The database can't be used at the moment.",
      });
      expect(cut.lines.join("")).not.toContain("a WebSocket of event streaming failed");
    } finally {
      await cut.close();
    }
  });

  test("receives the answer to its command before its server stops", async () => {
    // A server that executes runs reserves a connection for requests, and would wait in any case.
    const stopping = await startTestServer({ connectionString: server.connectionString, role: "api" });
    const threadId = (await apiOf(server).aThread()) as string;
    const holder = new pg.Client({ connectionString: server.connectionString });
    await holder.connect();
    try {
      await holder.query("begin");
      await holder.query("select from threadloom.threads where thread_id = $1 for update", [threadId]);
      const client = await aSocket(addressOf(stopping, threadId));
      const cut = once(client.socket, "close");
      const answer = client.command("run.start", aTurn);
      await eventually("the command waits for the thread", async () => {
        // The holder can't ask: a transaction sees only the connections of its first query.
        const rows = await query(
          server,
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return rows.length > 0;
      });
      const closed = stopping.close();
      // Long enough for a server that cuts its sockets at once; a waiting one may be asked earlier or later.
      await Promise.race([cut, pause(200)]);
      await holder.query("commit");
      expect(await Promise.race([answer, cut])).toMatchObject({ type: "success" });
      await closed;
    } finally {
      await holder.end();
    }
  });

  test("is closed with HTTP's answer on a path that is not a thread's", async () => {
    const socket = new WebSocket(addressOf(server, "first"));
    const [code, reason] = (await once(socket, "close")) as [number, Buffer];
    expect([code, String(reason)]).toEqual([4422, "'thread_id': must be a UUID."]);
  });

  test("is cut without a close frame when it sends more than the maximum of a body", async () => {
    const client = await aSocket(addressOf(server, newId()));
    client.socket.send("x".repeat(5 * 1024 * 1024));
    const [code] = (await once(client.socket, "close")) as [number];
    expect([1006, 1009]).toContain(code);
  });

  test("works with the SDK", async () => {
    const client = new Client({
      apiUrl: server.url,
      apiKey: null,
    });
    const thread = client.threads.stream(newId(), {
      assistantId: "approval",
      transport: "websocket",
      webSocketFactory: (url) => new WebSocket(url) as never,
    });
    await thread.run.start({ input: saying("tea") });
    const values: unknown[] = [];
    for await (const value of thread.values) values.push(value);
    expect([values.length > 0, thread.interrupts.length]).toEqual([true, 1]);
    await thread.input.respond({
      namespace: [],
      interrupt_id: thread.interrupts[0]?.interruptId ?? "",
      response: true,
    });
    const rest = await thread.subscribe(["lifecycle"]);
    for await (const event of rest) {
      if ((event as unknown as Frame).params.data["event"] === "completed") break;
    }
    await thread.close();
  });
});

describe("a client that needs a key", () => {
  const statusOf = async (address: string, protocols: string[] = [], headers = {}): Promise<number> => {
    const socket = new WebSocket(address, protocols, { headers });
    sockets.push(socket);
    return await new Promise((resolve) => {
      socket.on("open", () => resolve(101));
      socket.on("error", () => undefined);
      socket.on("unexpected-response", (_request, response) => resolve(response.statusCode ?? 0));
    });
  };

  test("may send it as a header, a subprotocol or in the query, and it is never logged", async () => {
    const address = addressOf(locked, newId());
    const secret = encodeURIComponent(KEY).replace("(", "%28").replace(")", "%29");
    expect(await statusOf(address)).toBe(401);
    expect(await statusOf(address, [], { "x-api-key": "another" })).toBe(403);
    expect(await statusOf(`${address}?api_key=another`)).toBe(403);
    expect(await statusOf(address, [], { "x-api-key": KEY })).toBe(101);
    expect(await statusOf(`${address}?api_key=${secret}`)).toBe(101);
    expect(await statusOf(address, [`x-api-key.${secret}`])).toBe(101);
    expect(await statusOf(`${locked.url.replace("http", "ws")}/threads?api_key=${secret}`)).toBe(404);
    const client = await aSocket(address, [`x-api-key.${secret}`, "events"]);
    expect(client.socket.protocol).toBe("events");
    expect(locked.lines.join("")).not.toMatch(/canary-77aa/);
    // Only for a WebSocket.
    expect((await fetch(`${locked.url}/openapi.json?api_key=${secret}`)).status).toBe(401);
  });
});

test("a message with too many elements is refused, and the socket stays open", async () => {
  const client = await aSocket(addressOf(server, newId()));
  const input = Array.from({ length: 250_001 }, () => 1);
  client.socket.send(
    JSON.stringify({ id: 1, method: "run.start", params: { assistant_id: "counter", input } }),
  );
  expect(await client.until(({ type }) => type === "error")).toMatchObject({
    error: "invalid_argument",
    message: "The body holds more than 250000 elements (items of lists and members of objects).",
  });
  expect(await client.command("subscription.subscribe", { channels: EVERYTHING })).toMatchObject({
    type: "success",
  });
});

test("pages of other origins may not open a socket of a server without keys", async () => {
  const careful = await startTestServer({ corsAllowOrigins: ["loopback"] });
  try {
    const address = addressOf(careful, newId());
    const opened = async (origin: string): Promise<boolean> =>
      await new Promise((resolve) => {
        const socket = new WebSocket(address, { origin });
        sockets.push(socket);
        socket.on("open", () => resolve(true));
        socket.on("error", () => resolve(false));
      });
    expect(await opened("http://evil.example")).toBe(false);
    expect(await opened("http://localhost:3000")).toBe(true);
  } finally {
    await careful.close();
  }
});

test("a request that offers an upgrade to HTTP/2 is served as it came, including its body", async () => {
  const { hostname, port } = new URL(server.url);
  const body = JSON.stringify({ metadata: { from: "java" } });
  const socket = connect(Number(port), hostname);
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  socket.write(
    `POST /threads HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n` +
      `HTTP2-Settings: AAEAAEAAAAIAAAAB\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
  );
  await new Promise((resolve) => setImmediate(resolve));
  socket.write(`${body.slice(5)}GET /ok HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: close\r\n\r\n`);
  await once(socket, "close");
  expect(text).toMatch(/^HTTP\/1\.1 200[^]*"from": "java"[^]*HTTP\/1\.1 200[^]*"ok":true/);
});
