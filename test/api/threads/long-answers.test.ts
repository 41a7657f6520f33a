import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, it } from "vitest";
import { threadNotFound } from "../../../src/platform/domain/errors.ts";
import { boundAnswers, createReadRoom, sendItems } from "../../../src/http/large-answers.ts";
import { eventually } from "../../helpers/conditions.ts";

const MEGABYTE = 1024 * 1024;

/** Less than two pieces. */
const room = createReadRoom(1.5 * MEGABYTE);

let app: FastifyInstance;
let url: string;
/** Created items and ended generators, over all requests. */
let made: number;
let ended: number;

/** `GET /:length` answers with this many items of half a megabyte; `?fails=n` fails at item n. */
beforeEach(async () => {
  [made, ended] = [0, 0];
  app = Fastify({ forceCloseConnections: true });
  boundAnswers(app, room);
  app.get<{ Params: { length: string }; Querystring: { fails?: string } }>("/:length", (request, reply) => {
    const items = async function* () {
      try {
        for (let index = 0; index < Number(request.params.length); index += 1) {
          await Promise.resolve();
          if (request.query.fails === String(index)) throw threadNotFound("t");
          made += 1;
          yield JSON.stringify(String(index).padStart(MEGABYTE / 2, "x"));
        }
      } finally {
        ended += 1;
      }
    };
    return sendItems(reply, room.each(undefined, items()));
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
});
afterEach(() => app.close());

/** A reader that has read only the headers of the answer. */
const open = async (path: string): Promise<IncomingMessage> => {
  const [response] = (await once(http.get(`${url}${path}`, { agent: false }), "response")) as [
    IncomingMessage,
  ];
  return response;
};

it.each([0, 1, 2, 3, 40])("sends %i items as one list", async (length) => {
  const response = await fetch(`${url}/${length}`);
  expect(response.headers.get("content-type")).toContain("application/json");
  const list = (await response.json()) as string[];
  expect(list.map((item) => Number(item.replaceAll("x", "")))).toEqual(
    Array.from({ length }, (_, index) => index),
  );
});

it("lists that wait for each other's pieces to be read all end", async () => {
  // Leaves room to make a second piece only when the first was taken.
  const taken = room.unread(undefined, MEGABYTE / 2);
  const lists = Array.from({ length: 8 }, async () => (await fetch(`${url}/7`)).json());
  for (const list of await Promise.all(lists)) expect(list).toHaveLength(7);
  taken();
});

it("creates items only as fast as the reader reads them", async () => {
  const response = await open("/1000");
  await eventually("more items exist than the headers of the answer need", () => made > 3);
  const before = made;
  expect((await fetch(`${url}/1`)).status).toBe(200); // the event loop turns meanwhile
  expect(made).toBeLessThan(before + 40);
  expect(made).toBeLessThan(100);
  response.destroy();
  await eventually("the items end with their reader", () => ended === 2);
});

it("answers an error at the start as usual, and cuts the connection if a part was sent already", async () => {
  expect((await fetch(`${url}/9?fails=0`)).status).toBe(500); // the server's error handler is not part of this test
  const response = await fetch(`${url}/40?fails=30`);
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow();
});
