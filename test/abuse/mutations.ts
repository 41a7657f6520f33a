import { addressOf, type Json, type Operation } from "./operations.ts";
import type { Random } from "./random.ts";
import type { Request } from "./send.ts";

/** Names with a special meaning for JavaScript, PostgreSQL, LangGraph, or a file system. */
export const NAMES = [
  ...[
    "constructor",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "__defineGetter__",
    "isPrototypeOf",
    "prototype",
  ],
  ...[
    "__start__",
    "__end__",
    "__copy__",
    "__input__",
    "__interrupt__",
    "__error__",
    "__pregel_tasks",
    "__root__",
  ],
  ...[
    "messages",
    "thread_id",
    "checkpoint_id",
    "run_id",
    "langgraph",
    "*",
    "|",
    ".",
    "..",
    "../../etc/passwd",
    "%00",
  ],
  ...[
    "'; drop table runs; --",
    "{}",
    "[]",
    "null",
    "undefined",
    "NaN",
    "true",
    "0",
    "-1",
    "",
    " ",
    "\n",
    "\u2028",
    "😀",
  ],
  ...["\ud800", "x\udc00", "a\0b", "\u202e", "x".repeat(300), "x".repeat(5_000), "é".repeat(400)],
];

const nested = (levels: number, open: (inner: Json) => Json): Json => {
  let value: Json = 1;
  for (let level = 0; level < levels; level += 1) value = open(value);
  return value;
};

/** Values of a wrong type, too large, too deep, or that only resemble valid ones. */
export const VALUES: readonly Json[] = [
  ...NAMES,
  ...[
    null,
    true,
    false,
    0,
    -1,
    1,
    1.5,
    -0.1,
    1e21,
    1e308,
    -1e308,
    2 ** 31,
    2 ** 31 - 1,
    2 ** 53,
    -(2 ** 63),
    5e-324,
  ],
  ...[
    [],
    {},
    [null],
    [[]],
    [{}],
    [""],
    ["constructor"],
    { constructor: 1 },
    { toString: null },
    { then: 1 },
    { toJSON: 1 },
  ],
  ...["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "1970-01-01T00:00:00Z"],
  ...[
    { messages: [{ foo: 1 }] },
    { messages: [null] },
    { messages: [{ role: "nobody", content: "x" }] },
    { messages: {} },
  ],
  ...[
    { messages: [{ type: "constructor", content: 1 }] },
    {
      messages: [
        ["human", "x"],
        ["nobody", "x"],
      ],
    },
    { messages: "x" },
  ],
  ...[
    { messages: [{ role: "user", content: "x", id: "\ud800" }] },
    { messages: [{ type: "remove", id: "nobody" }] },
  ],
  ...[
    { lc: 1, type: "constructor", id: ["langchain", "constructor"], kwargs: {} },
    { lc: 2, type: "undefined", id: [] },
  ],
  ...[
    { lc: 1, type: "not_implemented", id: ["a"] },
    { $eq: 1 },
    { $gt: {} },
    { $in: "x" },
    { $constructor: 1 },
  ],
  { goto: "constructor" },
  { goto: [{ node: "toString", input: null }, "valueOf"] },
  { update: { constructor: 1, __defineGetter__: 2 } },
  {
    update: [
      ["constructor", 1],
      ["messages", [null]],
    ],
  },
  { resume: { constructor: { toString: 1 } } },
  { update: { messages: [{ foo: 1 }] }, goto: "__end__" },
  {
    configurable: {
      thread_id: 1,
      checkpoint_id: "x",
      checkpoint_ns: "a|b",
      __pregel_send: 1,
      constructor: {},
    },
  },
  { recursion_limit: 1, max_concurrency: 1, tags: ["\ud800"] },
  nested(100, (inner) => [inner]),
  nested(300, (inner) => ({ a: inner })),
  nested(600, (inner) => [inner]),
  Array.from({ length: 2_000 }, (_, index) => index),
  Object.fromEntries(Array.from({ length: 1_100 }, (_, index) => [`key ${index}`, index])),
];

const mutated = (value: Json, random: Random, whole = 0.25): Json => {
  if (typeof value !== "object" || value === null || random.chance(whole)) return random.pick(VALUES);
  if (Array.isArray(value)) {
    if (value.length === 0 || random.chance(0.2)) return [...value, random.pick(VALUES)];
    const index = random.below(value.length);
    return value.map((item, place) => (place === index ? mutated(item, random) : item));
  }
  const keys = Object.keys(value);
  if (keys.length === 0 || random.chance(0.1)) return { ...value, [random.pick(NAMES)]: random.pick(VALUES) };
  const key = random.pick(keys);
  const { [key]: item = null, ...others } = value;
  const kind = random.next();
  if (kind < 0.1) return others;
  if (kind < 0.2) return { ...others, [random.pick(NAMES)]: item };
  if (kind < 0.3) return { ...value, [key]: [item] };
  return { ...value, [key]: mutated(item, random) };
};

/** Text that is not JSON, or more than it seems. */
const brokenText = (text: string, random: Random): string | Buffer => {
  switch (random.below(6)) {
    case 0:
      return text.slice(0, random.below(text.length));
    case 1:
      return `${text}${text}`;
    case 2:
      return Buffer.from(Buffer.from(text).map((byte) => (random.chance(0.02) ? random.below(256) : byte)));
    case 3:
      return text.replace(/"(\w+)":/, '"__proto__":');
    case 4:
      return text.replace(/\d+/, "1e999");
    default:
      return text.replace(/\d+/, "9007199254740993");
  }
};

/** Without some optional fields: with all of them, hardly a body would be valid. */
const thinned = (body: Json, random: Random): Json => {
  if (Array.isArray(body)) return body.map((item) => thinned(item, random));
  if (typeof body !== "object" || body === null) return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => NEEDED.has(name) || random.chance(0.35)));
};

/** Fields without which a request is refused at once. */
const NEEDED = new Set(["assistant_id", "graph_id", "namespace", "key", "value", "thread_ids", "metadata"]);

export const mutatedRequest = (operation: Operation, random: Random): Request => {
  const { method, template, headers: own, isWhole = false } = operation;
  const path = { ...operation.path };
  const query = Object.fromEntries(Object.entries(operation.query).filter(() => random.chance(0.3)));
  let body = operation.bodies.length === 0 ? undefined : random.pick(operation.bodies);
  if (body !== undefined && !isWhole) body = thinned(body, random);
  const places = [
    ...(body === undefined ? [] : ["body", "body", "body", "body", "body"]),
    ...(Object.keys(path).length === 0 ? [] : ["path"]),
    "query",
  ];
  for (let count = random.pick([1, 1, 1, 2, 3]); count > 0; count -= 1) {
    const place = random.pick(places);
    if (place === "body") body = mutated(body!, random, 0.04);
    else if (place === "path") path[random.pick(Object.keys(path))] = random.pick(NAMES);
    else query[random.pick([...Object.keys(operation.query), ...NAMES])] = random.pick(VALUES);
  }
  const text = body === undefined ? undefined : JSON.stringify(body);
  const changed: Record<string, string> = random.chance(0.02)
    ? { "last-event-id": random.pick(["-1", "x", "9".repeat(15), "1e9"]) }
    : {};
  if (own !== undefined && random.chance(0.05))
    changed[random.pick(Object.keys(own))] = random.pick(["", "x", "0.3", "1.0", "2.0", "2025-06-18"]);
  return {
    method,
    // A longer header line is refused before the request is parsed.
    address: addressOf({ template, path, query }).slice(0, 8_000),
    ...(text === undefined ? {} : { body: random.chance(0.03) ? brokenText(text, random) : text }),
    headers: { ...own, ...changed },
  };
};
