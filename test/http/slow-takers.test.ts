import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, expect, it } from "vitest";
import {
  boundAnswers,
  createReadRoom,
  sendItems,
  type TakersPatience,
} from "../../src/http/large-answers.ts";
import { eventually } from "../helpers/conditions.ts";

/** Large answers to clients that read slowly, or not at all. */

/** More than the buffers at both ends of a connection. */
const LENGTH = 16 * 1024 * 1024;
const LARGE = "x".repeat(LENGTH);
/** An odd number, so pairs of characters cross all chunk borders. */
const PAIRS = `x${"😀".repeat(2 * 1024 * 1024)}`;

let app: FastifyInstance;
let url: string;
/** Answers whose connection is closed, by path. */
let closed: string[];

const serve = async (patience: TakersPatience): Promise<void> => {
  closed = [];
  app = Fastify({ forceCloseConnections: true });
  boundAnswers(app, createReadRoom(), patience);
  app.addHook("onRequest", (request, reply, done) => {
    reply.raw.once("close", () => closed.push(request.url));
    done();
  });
  app.get("/whole", (_request, reply) => reply.type("application/json").send(LARGE));
  app.get("/pairs", (_request, reply) => reply.type("application/json").send(PAIRS));
  app.get("/list", (_request, reply) => {
    const items = async function* () {
      await Promise.resolve();
      yield JSON.stringify(LARGE);
      yield JSON.stringify("last");
    };
    return sendItems(reply, items(), patience);
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
};
afterEach(() => app.close());

const open = async (path: string): Promise<IncomingMessage> => {
  const [response] = (await once(http.get(`${url}${path}`, { agent: false }), "response")) as [
    IncomingMessage,
  ];
  return response;
};

/** Reads 64 KiB, pauses, and so on: some 3 MB in a second. Returns the number of bytes. */
const takeSlowly = async (response: IncomingMessage): Promise<number> => {
  let bytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    bytes += piece.length;
    await pause(20);
  }
  return bytes;
};

it.each(["/whole", "/list"])("a client that reads slowly but steadily gets all of %s", async (path) => {
  // Longer than a busy machine pauses, and shorter than the whole answer takes.
  const stalledMs = 3_000;
  await serve({ stalledMs });
  const startedAt = performance.now();
  expect(await takeSlowly(await open(path))).toBeGreaterThanOrEqual(LENGTH);
  expect(performance.now() - startedAt).toBeGreaterThan(stalledMs);
});

it.each(["/whole", "/list"])("a client that stops reading %s is disconnected", async (path) => {
  await serve({ stalledMs: 200 });
  const response = await open(path);
  await eventually("the connection is closed", () => closed.includes(path));
  await expect(response.resume().toArray()).rejects.toThrow("aborted");
});

it("a client that reads steadily is disconnected, too, when the whole has taken too long", async () => {
  await serve({ stalledMs: 60_000, takenWithinMs: 500 });
  await expect(takeSlowly(await open("/whole"))).rejects.toThrow("aborted");
  await expect.poll(() => closed).toEqual(["/whole"]);
});

it("an answer sent in pieces is unchanged, and has its length", async () => {
  await serve({ stalledMs: 60_000 });
  const response = await fetch(`${url}/pairs`);
  expect(response.headers.get("content-length")).toBe(String(Buffer.byteLength(PAIRS)));
  expect((await response.text()) === PAIRS).toBe(true);
  const head = await fetch(`${url}/pairs`, { method: "HEAD" });
  expect(head.headers.get("content-length")).toBe(String(Buffer.byteLength(PAIRS)));
});
