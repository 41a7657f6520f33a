import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { webhookConfigOf, webhooksSchema } from "../../../src/graphs/project/webhooks.ts";
import { refusalOf } from "../../../src/protocols/webhooks/url-rules.ts";
import type { ResolvedAddress, ResolveName } from "../../../src/protocols/webhooks/request.ts";
import { post, type Post, type PostResult } from "../../../src/protocols/webhooks/request.ts";
import { startReceiver, type Receiver } from "./receiver.ts";
import { REFUSED } from "./refused-addresses.ts";

/** Requests to addresses that users name. `refused` listens where no request may arrive. */

const configOf = (webhooks: object) => webhookConfigOf(webhooksSchema.parse(webhooks), false);
const USUAL = configOf({});
const LOOPBACK = configOf({ url: { disable_loopback: false } });
const HERE: ResolvedAddress = { address: "127.0.0.1", family: 4 };
const ELSEWHERE: ResolvedAddress = { address: "203.0.114.1", family: 4 };

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver.close();
});

const notAsked: ResolveName = () => Promise.reject(new Error("no name may be resolved"));
const asking = (url: string, options: Partial<Post> = {}): Promise<PostResult> =>
  post({
    url: new URL(url),
    headers: { "content-type": "application/json" },
    body: Buffer.from("{}"),
    refusalOf: (address) => refusalOf(address, USUAL),
    resolveName: notAsked,
    timeoutMs: 2_000,
    signal: new AbortController().signal,
    ...options,
  });
const allowing = { refusalOf: (address: string) => refusalOf(address, LOOPBACK) };

test("no connection is made to a refused address, however it is spelled", async () => {
  const results = await Promise.all(
    REFUSED.filter((url) => !/localhost/i.test(url)).map((url) => {
      const there = new URL(url);
      there.port = String(receiver.port);
      return asking(there.href);
    }),
  );
  for (const result of results)
    expect(result).toMatchObject({ kind: "unanswered", reason: expect.stringMatching(/ is /) as string });
  expect(receiver.connections).toBe(0);
});

test.each([
  ["127.0.0.1", 4],
  ["::1", 6],
  ["::ffff:127.0.0.1", 6],
  ["169.254.169.254", 4],
  ["fe80::1%eth0", 6],
  ["10.0.0.1", 4],
] as const)(
  "no connection is made to a name that stands for %s, alone or beside a public one",
  async (address, family) => {
    const found: ResolvedAddress = { address, family };
    for (const answer of [[found], [ELSEWHERE, found], [found, ELSEWHERE]]) {
      const result = await asking(`http://rebound.example:${receiver.port}/`, {
        resolveName: () => Promise.resolve(answer),
      });
      expect(result).toMatchObject({
        reason: expect.stringContaining("'rebound.example' stands for") as string,
      });
    }
    expect(receiver.connections).toBe(0);
  },
);

test("a name that changes its answer is resolved once, and that address is called", async () => {
  let asked = 0;
  const resolveName: ResolveName = () => {
    asked += 1;
    return Promise.resolve([asked === 1 ? ELSEWHERE : HERE]);
  };
  const result = await asking(`http://changing.example:${receiver.port}/`, { resolveName, timeoutMs: 300 });
  expect(result.kind).toBe("unanswered");
  expect(asked).toBe(1);
  expect(receiver.connections).toBe(0);
});

test("an unknown name, and one whose server hangs, cause the server's own error texts", async () => {
  const unknown = Object.assign(new Error("queryA ENOTFOUND"), { code: "ENOTFOUND" });
  expect(await asking("http://unknown.example/", { resolveName: () => Promise.reject(unknown) })).toEqual({
    kind: "unanswered",
    reason: "The name of the receiver is not known.",
  });
  const never: ResolveName = () => new Promise(() => undefined);
  expect(await asking("http://hanging.example/", { resolveName: never, timeoutMs: 100 })).toEqual({
    kind: "unanswered",
    reason: "The receiver did not answer in time.",
  });
});

test("an allowed name is called", async () => {
  const resolveName: ResolveName = () => Promise.resolve([HERE]);
  const result = await asking(`http://here.example:${receiver.port}/hook`, { ...allowing, resolveName });
  expect(result).toEqual({ kind: "answered", status: 204, retryAfter: undefined });
  expect(receiver.received[0]?.headers).toMatchObject({
    host: `here.example:${receiver.port}`,
    connection: "close",
  });
});

/** A server that does not speak HTTP. */
const startRaw = async (speak: (write: (text: string) => void) => void) => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => speak((text) => socket.write(text)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
};

test.each([
  ["says nothing", () => undefined, "in time"],
  ["speaks no HTTP", (write: (text: string) => void) => write("220 smtp ready\r\n"), "no HTTP"],
  [
    "sends headers without an end",
    (write: (text: string) => void) => write(`HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}`),
    "no HTTP",
  ],
  [
    "begins an answer and hangs",
    (write: (text: string) => void) => write("HTTP/1.1 200 OK\r\na: "),
    "in time",
  ],
  [
    "sends one interim answer after the other",
    (write: (text: string) => void) => write("HTTP/1.1 102 Processing\r\n\r\n".repeat(100)),
    "in time",
  ],
  [
    "switches protocols",
    (write: (text: string) => void) =>
      write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    "no HTTP",
  ],
] as const)("a receiver that %s counts as an unanswered request", async (_, speak, reason) => {
  const { server, url } = await startRaw(speak);
  const result = await asking(url, { ...allowing, timeoutMs: 300 });
  expect(result).toMatchObject({ kind: "unanswered", reason: expect.stringContaining(reason) as string });
  server.close();
});

test("an answer whose body hangs counts as an answer; a stop ends the request", async () => {
  const slow = await startRaw((write) => write("HTTP/1.1 201 Created\r\ncontent-length: 10\r\n\r\nab"));
  const result = await asking(slow.url, { ...allowing, timeoutMs: 200 });
  expect(result).toMatchObject({ kind: "answered", status: 201 });
  slow.server.close();
  const silent = await startRaw(() => undefined);
  const stopping = new AbortController();
  const stopped = asking(silent.url, { ...allowing, signal: stopping.signal });
  stopping.abort();
  expect(await stopped).toEqual({ kind: "aborted" });
  silent.server.close();
});

test("a user and password in the address are sent as Basic credentials, unless a header says others", async () => {
  const url = `http://user:p%40ss@127.0.0.1:${receiver.port}/credentials`;
  await asking(url, allowing);
  await asking(url, { ...allowing, headers: { Authorization: "Bearer other" } });
  const sent = receiver.received
    .filter(({ path }) => path === "/credentials")
    .map(({ headers }) => headers.authorization);
  expect(sent).toEqual([`Basic ${Buffer.from("user:p@ss").toString("base64")}`, "Bearer other"]);
});
