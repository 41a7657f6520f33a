import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { assistantNotFound } from "../../src/platform/domain/errors.ts";
import {
  jsonObject,
  page,
  queryBoolean,
  queryInteger,
  queryList,
  bodyOf,
  uuid,
} from "../../src/platform/domain/json-schemas.ts";
import type { RoutePlugin } from "../../src/http/route-plugin.ts";
import { aBareApp } from "../helpers/parts.ts";

const SECRET = "select secret from internals";

const sentences = z.object({
  text: z.string().min(1).max(3).optional(),
  list: z.array(z.string()).min(2).optional(),
  either: z.union([z.string(), z.array(z.string())]).optional(),
  star: z.union([z.literal("*"), z.array(z.string())]).optional(),
  object: jsonObject.optional(),
  whole: z.int().min(1).max(9).optional(),
  day: z.iso.date().optional(),
  id: z.uuid().optional(),
  needs: z.object({ it: jsonObject }).optional(),
});

const routes: RoutePlugin = async (app) => {
  app.get(
    "/query",
    { schema: { querystring: z.object({ yes: queryBoolean, list: queryList, number: queryInteger(0, 5) }) } },
    async (request) => request.query,
  );
  app.get("/things/:id", { schema: { params: z.object({ id: uuid }) } }, async (request) => request.params);
  app.get(
    "/names/:name",
    { schema: { params: z.object({ name: z.string() }) } },
    async (request) => request.params,
  );
  app.post("/page", { schema: { body: bodyOf(page) } }, async (request) => request.body);
  app.post<{ Body: { name: string } }>("/missing", async ({ body }) => {
    throw assistantNotFound(body.name);
  });
  app.post("/sentences", { schema: { body: sentences } }, async () => ({}));
  app.get("/boom", async () => {
    throw new Error(SECRET);
  });
  app.get("/boom/thrown-text", async () => {
    throw SECRET as unknown as Error;
  });
};

let server: Awaited<ReturnType<typeof aBareApp>>;
let address: { host: string; port: number };
beforeAll(async () => {
  server = await aBareApp({ routes: [routes] });
  const url = new URL(await server.app.listen({ host: "127.0.0.1", port: 0 }));
  address = { host: url.hostname, port: Number(url.port) };
});
afterAll(async () => {
  await server.app.close();
});

/** The server's answers to bytes that are not a valid request. */
const sendRaw = async (bytes: string): Promise<string> =>
  await new Promise((resolve, reject) => {
    const socket = connect(address.port, address.host, () => socket.write(bytes));
    let answer = "";
    socket.on("data", (chunk) => (answer += chunk.toString()));
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
  });

const query = async (text: string) => {
  const answer = await server.client.get(`/query?${text}`);
  return answer.status === 200 ? answer.body : `${answer.status} ${answer.body.detail}`;
};

test.each([
  ["yes=1", { yes: true }],
  ["yes=0", { yes: false }],
  ["yes=true", { yes: true }],
  ["yes=false", { yes: false }],
  ["yes=True", { yes: true }],
  ["yes=", {}],
  ["", {}],
  ["yes=maybe", "422 'yes': must be true or false."],
])("booleans in a query are 0, 1, true or false, and an empty one is absent: %s", async (text, expected) => {
  expect(await query(text)).toEqual(expected);
});

test.each([
  ["list=a&list=b", { list: ["a", "b"] }],
  ["list=a", { list: ["a"] }],
  ["list=a,b", { list: ["a", "b"] }],
  [`list=${encodeURIComponent('["a","b,c"]')}`, { list: ["a", "b,c"] }],
  ["list=%5Ba", { list: ["[a"] }],
  ["list=", {}],
  ["list=&list=", {}],
  ["list=[]", {}],
  ["list=[1]", "422 'list.0': must be a string, not an integer."],
])("lists in a query are repeated, comma-joined or one JSON string: %s", async (text, expected) => {
  expect(await query(text)).toEqual(expected);
});

test.each([
  ["number=3", { number: 3 }],
  ["number=", {}],
  ["number=6", "422 'number': must be at most 5."],
  ["number=-1", "422 'number': must be at least 0."],
  ["number=99999999999999999999", "422 'number': must be at most 5."],
  ["number=1.5", "422 'number': must be an integer, not a number."],
  ["number=x", "422 'number': must be an integer."],
  ["number=1&number=2", "422 'number': must be an integer."],
])("whole numbers in a query are limited to their range: %s", async (text, expected) => {
  expect(await query(text)).toEqual(expected);
});

test("a refusal does not repeat a name of a megabyte", async () => {
  const { status, body } = await server.client.post("/missing").send({ name: "x".repeat(900_000) });
  expect(status).toBe(404);
  expect(body.detail).toMatch(/^Assistant 'x{1000}/);
  expect(body.detail.length).toBeLessThan(3_000);
});

test("an id that is not a UUID causes a 422", async () => {
  const answer = await server.client.get("/things/1234");
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({ detail: "'id': must be a UUID." });
});

test("percent-encoded parts of a path arrive decoded", async () => {
  const name = "a/b c?d#e%ä😀";
  const answer = await server.client.get(`/names/${encodeURIComponent(name)}`);
  expect(answer.body).toEqual({ name });
});

test.each([
  ["/names/%ED%A0%80", 400, "The path can't be read: it is not validly percent-encoded, or no path at all."],
  ["/names/%", 400, "The path can't be read: it is not validly percent-encoded, or no path at all."],
  [`/names/${"x".repeat(2_000)}`, 414, "A part of the path is longer than this server accepts."],
])("an unreadable path is refused: %s", async (path, status, detail) => {
  const answer = await server.client.get(path);
  expect(answer.status).toBe(status);
  expect(answer.body).toEqual({ detail });
});

test("an unknown route causes a 404 that names it", async () => {
  const answer = await server.client.get("/nope/x?secret=1");
  expect(answer.status).toBe(404);
  expect(answer.body).toEqual({ detail: "There is no route GET /nope/x." });
  const long = await server.client.get(`/${"x/".repeat(3_000)}`);
  expect(long.body.detail.length).toBeLessThan(300);
});

test("another method of a known path causes a 404, too", async () => {
  const answer = await server.client.put("/query");
  expect([answer.status, answer.body]).toEqual([404, { detail: "There is no route PUT /query." }]);
});

test.each([
  ["/query", 200],
  ["/nope", 404],
  ["/boom", 500],
  ["/names/%", 400],
  ["/docs/static/swagger-ui.css", 200],
  ["/openapi.json", 200],
])("browsers must not guess the type of an answer: %s", async (path, status) => {
  const answer = await server.client.get(path);
  expect([answer.status, answer.headers["x-content-type-options"]]).toEqual([status, "nosniff"]);
});

test.each([
  [{ text: "" }, "'text': must not be empty."],
  [{ text: "four" }, "'text': must have at most 3 characters."],
  [{ list: [] }, "'list': must have at least 2 items."],
  [{ list: [1, 2] }, "'list.0': must be a string, not an integer."],
  [{ either: {} }, "'either': must be a string or a list, not an object."],
  [{ star: 5 }, "'star': must be '*' or a list, not an integer."],
  [{ object: "hello" }, "'object': must be an object, not a string."],
  [{ whole: "1" }, "'whole': must be an integer, not a string."],
  [{ whole: 1e20 }, "'whole': must be at most 9."],
  [{ day: "yesterday" }, "'day': must be a date, such as 2026-01-31."],
  [{ id: "1" }, "'id': must be a UUID."],
  [{ needs: {} }, "'needs.it': is required."],
  [{ needs: { it: null } }, "'needs.it': must be an object, not null."],
  [[], "The body must be an object, not a list."],
])("a refusal says what the field must be: %j", async (body, detail) => {
  const answer = await server.client.post("/sentences").send(body);
  expect([answer.status, answer.body]).toEqual([422, { detail }]);
});

test("a trailing slash makes no difference", async () => {
  expect((await server.client.get("/query/?yes=1")).body).toEqual({ yes: true });
});

test("HEAD answers like GET, without a body", async () => {
  const answer = await server.client.head("/query?yes=1");
  expect(answer.status).toBe(200);
  expect(answer.headers["content-length"]).toBe(String('{"yes":true}'.length));
  expect(answer.text ?? "").toBe("");
});

test.each(["/boom", "/boom/thrown-text"])(
  "a server error is a 500 that hides its cause and logs it: %s",
  async (path) => {
    const answer = await server.client.get(path);
    expect(answer.status).toBe(500);
    expect(answer.body).toEqual({ detail: "The server could not answer this request; its log says why." });
    expect(
      server.lines.some((line) => line.includes(SECRET) && line.includes(answer.headers["x-request-id"]!)),
    ).toBe(true);
  },
);

test("every answer has an id, which is also in the log", async () => {
  const ids = await Promise.all(
    [1, 2, 3].map(async () => (await server.client.get("/query")).headers["x-request-id"]),
  );
  expect(new Set(ids).size).toBe(3);
});

test.each([
  ["GET / HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n", "400"],
  ["nonsense\r\n\r\n", "400"],
  [`GET / HTTP/1.1\r\nHost: x\r\nX-Big: ${"x".repeat(40_000)}\r\n\r\n`, "431"],
  [
    "POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "400",
  ],
  ["POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", "400"],
])(
  "bytes that are not HTTP are refused in the server's format, and not logged: %j",
  async (bytes, status) => {
    const before = server.lines.length;
    const answer = await sendRaw(bytes.replace("\r\n", "\r\nX-Api-Key: canary-in-raw-bytes\r\n"));
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(answer.split("\r\n\r\n")[1]!)).toEqual({
      detail: expect.stringMatching(/^The request.+\.$/),
    });
    expect(server.lines.slice(before)).toEqual([]);
  },
);

test("a request that is aborted halfway does not harm the server", async () => {
  await new Promise<void>((resolve) => {
    const socket = connect(address.port, address.host, () => {
      socket.write('POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"limit":', () =>
        socket.destroy(),
      );
    });
    socket.on("close", () => resolve());
  });
  expect((await server.client.get("/query")).status).toBe(200);
});

test("while it closes, a server refuses new requests with 503 in its format", async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const { app } = await aBareApp({
    routes: [
      async (instance) => {
        instance.get("/ping", async () => ({ ok: true }));
        instance.addHook("preClose", async () => await held);
      },
    ],
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const closed = app.close();
  const answer = await fetch(`${url}/ping`);
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toBe("1");
  expect(await answer.json()).toEqual({ detail: "This server is stopping; nothing was stored." });
  release();
  await closed;
});
