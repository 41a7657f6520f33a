import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bodyOf, jsonValue, optional, storableObject } from "../../src/platform/domain/json-schemas.ts";
import type { RoutePlugin } from "../../src/http/route-plugin.ts";
import { eventually } from "../helpers/conditions.ts";
import { aBareApp } from "../helpers/parts.ts";

const BODY_LIMIT = 4 * 1024 * 1024;
const BODY_ELEMENTS = 100_000;

/** Ends the answers of /held and /long. */
const waiting: (() => void)[] = [];

const echo: RoutePlugin = async (app) => {
  app.post(
    "/echo",
    {
      config: { largeBody: true },
      schema: { body: bodyOf({ input: optional(jsonValue), metadata: optional(storableObject) }) },
    },
    async (request) => ({ got: request.body }),
  );
  app.post("/search", { schema: { body: bodyOf({ input: optional(jsonValue) }) } }, async (request) => ({
    got: request.body,
  }));
  app.post("/held", { config: { largeBody: true } }, async () => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return {};
  });
  app.post("/long", { config: { largeBody: true } }, async (request) => {
    request.releaseBody();
    await new Promise<void>((resolve) => waiting.push(resolve));
    return {};
  });
  app.delete("/echo", { schema: { body: bodyOf({ input: optional(jsonValue) }) } }, async (request) => ({
    got: request.body,
  }));
};

let url: string;
let stop: () => Promise<void>;
beforeAll(async () => {
  const { app } = await aBareApp({ routes: [echo], bodyLimit: BODY_LIMIT, bodyElements: BODY_ELEMENTS });
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  stop = async () => await app.close();
});
afterAll(async () => {
  await stop();
});

const send = async (
  body: string | Buffer<ArrayBuffer> | undefined,
  headers: Record<string, string> = {},
  method = "POST",
) => {
  const answer = await fetch(`${url}/echo`, { method, body, headers });
  return { status: answer.status, body: (await answer.json()) as { got?: unknown; detail?: string } };
};

test.each([
  ["application/json"],
  ["application/json; charset=utf-8"],
  ["text/plain;charset=UTF-8"],
  ["application/x-www-form-urlencoded"],
  ["application/octet-stream"],
  [""],
  ["nonsense"],
])("a body is parsed as JSON with any content type: %j", async (type) => {
  const answer = await send('{"input":{"ä":"😀"}}', { "content-type": type });
  expect(answer).toEqual({ status: 200, body: { got: { input: { ä: "😀" } } } });
});

test("a body may come in chunks and without a content type", async () => {
  const stream = new ReadableStream({
    start(controller) {
      for (const part of ['{"inp', 'ut":', '"x"}']) controller.enqueue(new TextEncoder().encode(part));
      controller.close();
    },
  });
  const request = { method: "POST", body: stream, duplex: "half" };
  const answer = await fetch(`${url}/echo`, request as RequestInit);
  expect(await answer.json()).toEqual({ got: { input: "x" } });
});

test.each([
  [undefined, {}],
  [undefined, { "content-type": "application/json" }],
  [undefined, { "content-type": "text/plain" }],
  ["", { "content-type": "application/json" }],
  ["  \n", { "content-type": "application/json" }],
  ["null", { "content-type": "application/json" }],
] as [string | undefined, Record<string, string>][])(
  "a missing body counts as an empty one if every field is optional: %j %j",
  async (body, headers) => {
    expect((await send(body, headers)).body).toEqual({ got: {} });
    expect((await send(body, headers, "DELETE")).body).toEqual({ got: {} });
  },
);

test.each([
  ["{"],
  ['{"a":}'],
  ["{'a':1}"],
  ["undefined"],
  ["NaN"],
  ['{"a":1}}'],
  ["\u0000"],
  ["[1,]"],
  ["\ufeff{}"],
])("malformed JSON causes a 400: %j", async (body) => {
  const answer = await send(body);
  expect(answer.status).toBe(400);
  expect(answer.body.detail).toMatch(/^The body is not valid JSON: .+\.$/);
});

test("a parser error quotes only a few words of the body", async () => {
  const answer = await send(`{"a": ${"x".repeat(100_000)}`);
  expect(answer.status).toBe(400);
  expect(answer.body.detail?.length).toBeLessThan(300);
});

test.each(["gzip", "br", "identity, gzip", "GZIP"])(
  "an encoded body is refused, and says why: %s",
  async (encoding) => {
    const answer = await send(gzipSync('{"input":1}'), { "content-encoding": encoding });
    expect(answer).toEqual({
      status: 415,
      body: {
        detail: `The body is encoded as '${encoding}', which this server does not read: send it without Content-Encoding.`,
      },
    });
  },
);

test.each(["identity", "Identity", ""])("a body that is not encoded may say so: %j", async (encoding) => {
  const answer = await send('{"input":1}', { "content-encoding": encoding });
  expect(answer).toEqual({ status: 200, body: { got: { input: 1 } } });
});

test("a body over the limit causes a 413, announced or not", async () => {
  const text = JSON.stringify({ input: "x".repeat(BODY_LIMIT) });
  const announced = await send(text);
  expect(announced).toEqual({
    status: 413,
    body: { detail: "The body is larger than 4.19 MB, the most that this route takes." },
  });
  const below = await send(JSON.stringify({ input: "x".repeat(BODY_LIMIT - 100) }));
  expect(below.status).toBe(200);
});

test("search filters, counts and names have a limit of one megabyte, whatever the body limit", async () => {
  const text = JSON.stringify({ input: "x".repeat(1_000_000) });
  const answer = await fetch(`${url}/search`, { method: "POST", body: text });
  expect([answer.status, await answer.json()]).toEqual([
    413,
    { detail: "The body is larger than 1 MB, the most that this route takes." },
  ]);
  const list = JSON.stringify({ input: Array.from({ length: 20_001 }, () => 1) });
  const many = await fetch(`${url}/search`, { method: "POST", body: list });
  expect([many.status, await many.json()]).toEqual([
    422,
    { detail: "The body holds more than 20000 elements (items of lists and members of objects)." },
  ]);
});

const nested = (depth: number, open: string, close: string): string =>
  `{"input":${open.repeat(depth)}1${close.repeat(depth)}}`;

test.each([501, 1_000, 50_000, 500_000])("a body nested %d deep causes a 422", async (depth) => {
  for (const [open, close] of [
    ["[", "]"],
    ['{"a":', "}"],
    ['[{"\\"":', "}]"],
  ] as const) {
    const most = Math.floor((BODY_LIMIT - 20) / (open.length + close.length));
    expect(await send(nested(Math.min(depth, most), open, close))).toEqual({
      status: 422,
      body: { detail: "The body is nested deeper than 500 levels." },
    });
  }
});

test("very deep but legitimate nesting is accepted, and brackets in text do not count", async () => {
  expect((await send(nested(100, "[", "]"))).status).toBe(200);
  expect((await send(nested(400, '{"a":', "}"))).status).toBe(200);
  const text = `${"[".repeat(5_000)}\\"${"{".repeat(5_000)}\\\\`;
  expect((await send(`{"input":"${text}"}`)).status).toBe(200);
  expect((await send(`{"${text}":1}`)).status).toBe(200);
});

test("unclosed brackets are refused", async () => {
  for (const body of ["[".repeat(1_000_000), '{"a":'.repeat(800_000), `["${"[".repeat(1_000_000)}`])
    expect((await send(body)).status).toBe(400);
});

test.each([
  ["a list", "[", "1", "]"],
  ["lists in a list", "[", "[]", "]"],
])("a body with too many elements causes a 422: %s", async (_name, open, item, close) => {
  const body = (items: number) =>
    `{"input":${open}${Array.from({ length: items }, () => item).join(",")}${close}}`;
  expect(await send(body(BODY_ELEMENTS + 1))).toEqual({
    status: 422,
    body: {
      detail: `The body holds more than ${BODY_ELEMENTS} elements (items of lists and members of objects).`,
    },
  });
  expect(await send(body(BODY_ELEMENTS - 2))).toMatchObject({ status: 200 });
  // Commas and brackets in text are not elements.
  expect((await send(`{"input":"${"[,".repeat(BODY_ELEMENTS)}"}`)).status).toBe(200);
});

test("fields stored beside a record have a smaller limit", async () => {
  const elements = JSON.stringify({ metadata: { list: Array.from({ length: 20_000 }, () => 1) } });
  expect(await send(elements)).toEqual({
    status: 422,
    body: { detail: "'metadata': holds more than 20000 elements (items of lists and members of objects)." },
  });
  expect(await send(JSON.stringify({ metadata: { text: "x".repeat(1_000_001) } }))).toEqual({
    status: 422,
    body: { detail: "'metadata': holds more than 1000000 characters." },
  });
});

test("a whole number beyond 2^53 becomes the nearest number of JavaScript", async () => {
  expect((await send('{"input":9007199254740993}')).body).toEqual({ got: { input: 9007199254740992 } });
});

test.each([
  ["9007199254740991"],
  ["-9007199254740992"],
  ["1700000000123456800"],
  ["100000000000000000000"],
  ["1e21"],
  ["12345678901234567890.5"],
  ["0.12345678901234567890123"],
  ["1.7976931348623157e308"],
  ['"12345678901234567890"'],
])("a number from a JavaScript client is accepted, and so is one that is not whole: %s", async (number) => {
  expect(await send(`{"input":[${number}]}`)).toEqual({
    status: 200,
    body: { got: { input: [JSON.parse(number)] } },
  });
});

test.each([
  ['{"__proto__":{"polluted":1}}'],
  ['{"input":{"a":[{"__proto__":1}]}}'],
  ['{"input":{"\\u005f\\u005fproto\\u005f\\u005f":1}}'],
  ['{"input":{"__pr\\u006fto__":null}}'],
  ['{"input":{"\\u005F_\\u0070roto__":[]}}'],
])("a key __proto__ causes a 422, however it is spelled: %s", async (body) => {
  const answer = await send(body);
  expect(answer).toEqual({
    status: 422,
    body: { detail: "The body holds the key '__proto__', which is refused." },
  });
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test.each([
  ['{"input":"__proto__"}'],
  ['{"input":"the key \\"__proto__\\": is a trap"}'],
  ['{"input":{"x__proto__":1,"__proto":2,"constructor":{"prototype":1}}}'],
])("text that only mentions __proto__ is accepted: %s", async (body) => {
  const answer = await send(body);
  expect(answer.status).toBe(200);
  expect(answer.body.got).toEqual(JSON.parse(body));
});

test.each([["1e400"], ["-1e400"], ["1e99999999"], ["9".repeat(400)]])(
  "a number beyond the range causes a 422: %s",
  async (number) => {
    for (const body of [`{"input":${number}}`, `{"metadata":{"a":[{"b":${number}}]}}`, number]) {
      const answer = await send(body);
      expect(answer).toEqual({
        status: 422,
        body: { detail: "The body holds a number that is out of range." },
      });
    }
  },
);

test.each([
  ['"\\u0000"'],
  ['"\\ud800"'],
  ['"\\udc00x"'],
  ['{"a\\u0000":1}'],
  ['{"\\ud83d":1}'],
  ['[["\\u0000"]]'],
])("text that PostgreSQL can't store causes a 422 where it would be stored: %s", async (value) => {
  const answer = await send(`{"metadata":{"a":${value}}}`);
  expect(answer).toEqual({
    status: 422,
    body: {
      detail: "'metadata': holds a NUL character or half a surrogate pair, which can't be stored.",
    },
  });
  expect((await send(`{"input":${value}}`)).status).toBe(200);
});

test("bytes that are not UTF-8 cause no harm", async () => {
  const answer = await send(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]));
  expect(answer.status).toBe(200);
  expect((await send(Buffer.from([0xff, 0xfe, 0xfd]))).status).toBe(400);
});

test.each([
  ["[]", "The body must be an object, not a list."],
  ['"x"', "The body must be an object, not a string."],
  ["5", "The body must be an object, not an integer."],
  ["true", "The body must be an object, not a boolean."],
])("a body of another type causes a 422: %s", async (body, detail) => {
  expect(await send(body)).toEqual({ status: 422, body: { detail } });
});

describe("large bodies", () => {
  const large = JSON.stringify({ input: "x".repeat(BODY_LIMIT - 100) });
  const post = (path: string, signal?: AbortSignal) =>
    fetch(`${url}${path}`, { method: "POST", body: large, ...(signal && { signal }) });

  test("are processed four at a time; small ones do not wait", async () => {
    const held = Array.from({ length: 5 }, () => post("/held"));
    await eventually("four are in process", () => waiting.length === 4);
    expect((await send('{"input":"small"}')).status).toBe(200);
    expect(waiting).toHaveLength(4);
    waiting.shift()?.();
    await eventually("the fifth is in process", () => waiting.length === 4);
    for (const end of waiting.splice(0)) end();
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual(held.map(() => 200));
  });

  test("of requests with late answers do not count when they have been processed", async () => {
    const long: Promise<Response>[] = [];
    for (let count = 1; count <= 5; count += 1) {
      long.push(post("/long"));
      await eventually(`${count} wait for their answers`, () => waiting.length === count);
    }
    for (const end of waiting.splice(0)) end();
    expect((await Promise.all(long)).map(({ status }) => status)).toEqual(long.map(() => 200));
  });

  test("of callers who hang up do not count, whether they were in process or waited", async () => {
    const leaving = new AbortController();
    const held = Array.from({ length: 6 }, () => post("/held", leaving.signal));
    await eventually("four are in process", () => waiting.length === 4);
    leaving.abort();
    await Promise.allSettled(held);
    const later = Array.from({ length: 5 }, async () => await (await post("/echo")).json());
    expect(await Promise.all(later)).toEqual(later.map(() => ({ got: JSON.parse(large) as unknown })));
    for (const end of waiting.splice(0)) end();
  });
});
