import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { bodyOf, jsonValue, optional, storableObject } from "../../src/lib/json-schemas.ts";
import type { RoutePlugin } from "../../src/lib/route-plugin.ts";
import { aBareApp } from "../helpers/parts.ts";

const BODY_LIMIT = 4 * 1024 * 1024;

const echo: RoutePlugin = async (app) => {
  app.post(
    "/echo",
    { schema: { body: bodyOf({ input: optional(jsonValue), metadata: optional(storableObject) }) } },
    async (request) => ({ got: request.body }),
  );
  app.delete("/echo", { schema: { body: bodyOf({ input: optional(jsonValue) }) } }, async (request) => ({
    got: request.body,
  }));
};

let url: string;
let stop: () => Promise<void>;
beforeAll(async () => {
  const { app } = await aBareApp({ routes: [echo], bodyLimit: BODY_LIMIT });
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
])("a body is JSON, whatever its content type says: %j", async (type) => {
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
  "a missing body is an empty one where every field is optional: %j %j",
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
])("malformed JSON is a 400: %j", async (body) => {
  const answer = await send(body);
  expect(answer.status).toBe(400);
  expect(answer.body.detail).toMatch(/^The body is not valid JSON: .+\.$/);
});

test("a parser's complaint quotes no more than a few words of the body", async () => {
  const answer = await send(`{"a": ${"x".repeat(100_000)}`);
  expect(answer.status).toBe(400);
  expect(answer.body.detail?.length).toBeLessThan(300);
});

test("a body over the limit is a 413, announced or not", async () => {
  const text = JSON.stringify({ input: "x".repeat(BODY_LIMIT) });
  const announced = await send(text);
  expect(announced).toEqual({
    status: 413,
    body: { detail: "The body is larger than this server accepts." },
  });
  const below = await send(JSON.stringify({ input: "x".repeat(BODY_LIMIT - 100) }));
  expect(below.status).toBe(200);
});

const nested = (depth: number, open: string, close: string): string =>
  `{"input":${open.repeat(depth)}1${close.repeat(depth)}}`;

/**
 * Sends a body and says whether the server handed it to the parser. That is where a hostile one would cost its time
 * (a million levels: 130 to 270 ms, where 50 are allowed); the time itself would say more about the machine.
 */
const sendWatched = async (body: string) => {
  const parse = vi.spyOn(JSON, "parse");
  try {
    const answer = await send(body);
    return { ...answer, parsed: parse.mock.calls.some(([text]) => text.length === body.length) };
  } finally {
    parse.mockRestore();
  }
};

test.each([1_000, 5_000, 50_000, 500_000])(
  "a body that is nested %d deep is a 422 that costs no parsing",
  async (depth) => {
    for (const [open, close] of [
      ["[", "]"],
      ['{"a":', "}"],
      ['[{"\\"":', "}]"],
    ] as const) {
      const body = nested(
        Math.min(depth, Math.floor((BODY_LIMIT - 20) / (open.length + close.length))),
        open,
        close,
      );
      expect(await sendWatched(body)).toEqual({
        status: 422,
        body: { detail: "The body is nested deeper than 500 levels." },
        parsed: false,
      });
    }
  },
);

test("nesting that no honest body reaches is still taken, and brackets in text are no nesting", async () => {
  expect((await send(nested(100, "[", "]"))).status).toBe(200);
  expect((await send(nested(400, '{"a":', "}"))).status).toBe(200);
  const text = `${"[".repeat(5_000)}\\"${"{".repeat(5_000)}\\\\`;
  expect((await send(`{"input":"${text}"}`)).status).toBe(200);
  expect((await send(`{"${text}":1}`)).status).toBe(200);
});

test("brackets that are never closed are refused, parsed or not", async () => {
  expect(await sendWatched("[".repeat(400))).toMatchObject({ status: 400, parsed: true });
  for (const body of ["[".repeat(1_000_000), '{"a":'.repeat(800_000), '["\\""'.repeat(800_000)]) {
    expect(await sendWatched(body)).toMatchObject({ status: 422, parsed: false });
  }
  // In a string that never ends, brackets are text.
  expect(await sendWatched(`["${"[".repeat(1_000_000)}`)).toMatchObject({ status: 400, parsed: true });
});

test.each([
  ['{"__proto__":{"polluted":1}}'],
  ['{"input":{"a":[{"__proto__":1}]}}'],
  ['{"input":{"\\u005f\\u005fproto\\u005f\\u005f":1}}'],
  ['{"input":{"__pr\\u006fto__":null}}'],
  ['{"input":{"\\u005F_\\u0070roto__":[]}}'],
])("a key __proto__ is a 422, however it is spelled: %s", async (body) => {
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
])("text that only speaks of __proto__ is taken: %s", async (body) => {
  const answer = await send(body);
  expect(answer.status).toBe(200);
  expect(answer.body.got).toEqual(JSON.parse(body));
});

test.each([["1e400"], ["-1e400"], ["1e99999999"], ["9".repeat(400)]])(
  "a number beyond the range is a 422: %s",
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
])("text that PostgreSQL can't keep is a 422 where it would have to: %s", async (value) => {
  const answer = await send(`{"metadata":{"a":${value}}}`);
  expect(answer).toEqual({
    status: 422,
    body: {
      detail: "'metadata': holds a NUL character or half a surrogate pair, which can't be stored.",
    },
  });
  expect((await send(`{"input":${value}}`)).status).toBe(200);
});

test("bytes that are no UTF-8 do no harm", async () => {
  const answer = await send(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]));
  expect(answer.status).toBe(200);
  expect((await send(Buffer.from([0xff, 0xfe, 0xfd]))).status).toBe(400);
});

test.each([
  ["[]", "The body: must be an object, not a list."],
  ['"x"', "The body: must be an object, not a string."],
  ["5", "The body: must be an object, not an integer."],
  ["true", "The body: must be an object, not a boolean."],
])("a body of another type is a 422: %s", async (body, detail) => {
  expect(await send(body)).toEqual({ status: 422, body: { detail } });
});
