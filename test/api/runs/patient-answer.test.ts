import { get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { boundAnswers, createReadRoom } from "../../../src/http/large-answers.ts";
import type { Room } from "../../../src/http/room.ts";
import { answerPatiently } from "../../../src/api/runs/joining/patient-answer.ts";
import { eventually } from "../../helpers/conditions.ts";

/** Answers that take long and are large. */

const MEGABYTE = 1024 * 1024;
const WARMTH_MS = 20;
const HOUR_MS = 3_600_000;

let app: FastifyInstance;
let room: Room;
let url: string;
let answer: { promise: Promise<string>; resolve: (text: string) => void };

const promised = (): typeof answer => {
  let resolve: (text: string) => void = () => undefined;
  const promise = new Promise<string>((resolved) => {
    resolve = resolved;
  });
  return { promise, resolve };
};

beforeEach(async () => {
  room = createReadRoom(10 * MEGABYTE);
  app = Fastify();
  boundAnswers(app, room);
  app.get("/late", (_, reply) => answerPatiently(reply, answer.promise, WARMTH_MS));
  app.get("/never-warmed", (_, reply) => answerPatiently(reply, answer.promise, HOUR_MS));
  app.get("/room", () => room.make(undefined, async () => "there is room"));
  await app.listen({ host: "127.0.0.1", port: 0 });
  url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  answer = promised();
});
afterEach(() => app.close());

/** Sends the request, and resolves when the response has begun with white space. */
const begun = async (): Promise<IncomingMessage> => {
  const response = await new Promise<IncomingMessage>((resolve) => void get(`${url}/late`, resolve));
  response.setEncoding("utf8");
  response.on("error", () => undefined);
  return response;
};

test("the headers of an answer arrive before the answer, whatever the interval of its white space", async () => {
  const response = await fetch(`${url}/never-warmed`);
  expect([response.status, response.headers.get("content-type")]).toEqual([
    200,
    "application/json; charset=utf-8",
  ]);
  answer.resolve('{"made":"afterwards"}');
  expect(await response.json()).toEqual({ made: "afterwards" });
});

test("an answer that is read slowly is valid JSON, without white space inside its pieces", async () => {
  const response = await begun();
  let read = "";
  const stopAt = Date.now();
  answer.resolve(JSON.stringify({ text: "x".repeat(8 * MEGABYTE) }));
  for await (const piece of response) {
    read += piece as string;
    // Slower than the interval of the white space, for some of the pieces.
    if (Date.now() - stopAt < 40 * WARMTH_MS) await new Promise((done) => setTimeout(done, 2 * WARMTH_MS));
    else await nextTurn();
  }
  expect((JSON.parse(read) as { text: string }).text).toHaveLength(8 * MEGABYTE);
});

test("an answer whose caller has disconnected takes no room from others", async () => {
  for (let caller = 0; caller < 4; caller += 1) {
    const response = await begun();
    const closed = new Promise((resolve) => response.once("close", resolve));
    response.destroy();
    await closed;
  }
  await eventually("nobody is connected", async () => {
    const connections = await new Promise<number>((resolve) => {
      app.server.getConnections((_, count) => resolve(count));
    });
    return connections === 0;
  });
  answer.resolve(JSON.stringify("x".repeat(3 * MEGABYTE)));
  await answer.promise;
  await nextTurn();
  expect(await (await fetch(`${url}/room`)).text()).toBe("there is room");
});
