import { closeSync, openSync } from "node:fs";
import { Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { markedOfGraph } from "../../../src/platform/lib/contents.ts";
import { createLogger } from "../../../src/platform/lib/logger.ts";
import { prettyLines } from "../../../src/platform/lib/pretty-lines.ts";
import { openTerminal } from "../../../src/platform/lib/terminal.ts";
import { listeningLogger } from "../../helpers/parts.ts";

const EIGHT_MEGABYTES = "x".repeat(8_000_000);
const LINE_AT_MOST = 100_000;

const failing = (message: string, cause?: unknown): Error => new Error(message, { cause });

const loop: Record<string, unknown> = {};
loop.self = loop;

test.each<[string, object]>([
  ["a field", { got: EIGHT_MEGABYTES }],
  ["a field within", { got: { a: [{ b: EIGHT_MEGABYTES }] } }],
  ["a key", { got: { [EIGHT_MEGABYTES]: 1 } }],
  ["a long list", { got: Array.from({ length: 1_000_000 }, () => "item") }],
  ["many long texts", { got: Array.from({ length: 1_000 }, () => "x".repeat(8_000)) }],
  ["bytes", { got: Buffer.from(EIGHT_MEGABYTES) }],
  ["an error", { err: failing(EIGHT_MEGABYTES) }],
  ["an error's cause", { err: failing("outer", failing(EIGHT_MEGABYTES, failing(EIGHT_MEGABYTES))) }],
  ["an error's name", { err: Object.assign(failing("x"), { name: EIGHT_MEGABYTES, code: EIGHT_MEGABYTES }) }],
  ["what was thrown and is no error", { err: EIGHT_MEGABYTES }],
  [
    "errors of errors",
    { err: new AggregateError(Array.from({ length: 500 }, () => failing(EIGHT_MEGABYTES))) },
  ],
  ["a loop", { got: loop }],
])("a log line is bounded, for any request of a caller: %s", (_name, fields) => {
  const { logger, lines } = listeningLogger();
  logger.warn(fields, "something was odd");
  logger.child({}).warn(fields, "something was odd");
  expect(lines).toHaveLength(2);
  for (const line of lines) {
    expect(line.length).toBeLessThan(LINE_AT_MOST);
    expect(JSON.parse(line)).toMatchObject({ level: 40, msg: "something was odd" });
  }
});

test("a log line's message is bounded, too", () => {
  const { logger, lines } = listeningLogger();
  logger.warn(EIGHT_MEGABYTES);
  logger.warn({ one: 1 }, EIGHT_MEGABYTES);
  for (const line of lines) expect(line.length).toBeLessThan(LINE_AT_MOST);
});

test("a small value is written unchanged, and an omission is marked", () => {
  const { logger, lines } = listeningLogger();
  const fields = { text: "a\nb", list: [1, null, { deep: [true] }], nothing: undefined, at: new Date(0) };
  logger.info(fields, "small");
  expect(JSON.parse(lines[0]!)).toMatchObject({
    text: "a\nb",
    list: [1, null, { deep: [true] }],
    at: "1970-01-01T00:00:00.000Z",
    msg: "small",
  });
  logger.info({ text: "y".repeat(100_000) });
  expect(JSON.parse(lines[1]!)).toHaveProperty(
    "text",
    expect.stringMatching(/^y{8000}… \(100000 characters\)$/),
  );
});

test("an error is logged with its cause, and without its other properties", () => {
  const { logger, lines } = listeningLogger();
  const error = Object.assign(failing("outer", failing("inner")), {
    code: "23505",
    request: { key: "canary" },
  });
  logger.error({ err: error }, "failed");
  expect(JSON.parse(lines[0]!)).toMatchObject({
    err: {
      type: "Error",
      message: "outer",
      stack: expect.stringContaining("logger.test"),
      code: "23505",
      cause: { message: "inner" },
    },
  });
  expect(lines[0]).not.toContain("canary");
});

const terminal = (options?: { printsPlainly: boolean }) => {
  let shown = "";
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      shown += chunk.toString();
      done();
    },
  });
  const logger = createLogger({ level: "info", destination: prettyLines(destination, options) });
  return { logger, shown: () => shown, lines: () => stripVTControlCharacters(shown).trimEnd().split("\n") };
};

test("a terminal gets one line for a run's end: first how it ended, then the rest", () => {
  const { logger, lines } = terminal();
  logger.info({ run_id: "r1", graph_id: "agent", status: "success", exec_ms: 56 }, "run ended");
  expect(lines()).toEqual([
    expect.stringMatching(
      /^\[\d\d:\d\d:\d\d\] INFO: run ended: success \{"run_id":"r1","graph_id":"agent","exec_ms":56\}$/,
    ),
  ]);
});

test("a terminal gets a graph's output in one line, before the ids, without its line breaks and colours", () => {
  const { logger, lines } = terminal();
  logger.warn({ run_id: "r1", text: "hello\n[00:00:00] FATAL: forged\u001b[31m" }, "printed");
  expect(lines()).toEqual([
    expect.stringMatching(
      /WARN: printed "hello\\n\[00:00:00\] FATAL: forged\\u001b\[31m" \{"run_id":"r1"\}$/,
    ),
  ]);
});

test("if configured, a terminal gets a graph's output unchanged, except for control characters", () => {
  const { logger, shown, lines } = terminal({ printsPlainly: true });
  const text = "{ a: 1,\n\tb: \u001b[33m2\u001b[39m }";
  logger.info({ run_id: "r1", text }, "printed");
  expect(shown()).toBe(`${text}\n`);
  logger.info({ text: "gone\u001b[2J\r\u001b]0;title\u0007" }, "printed");
  expect(shown()).toBe(`${text}\ngone\\u001b[2J\\r\\u001b]0;title\\u0007\n`);
  logger.info({ text: "of the server" }, "told");
  expect(lines().at(-1)).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: told "of the server"$/);
});

test("a terminal gets an error with its stack, line by line", () => {
  const { logger, lines } = terminal();
  logger.error({ err: failing("outer"), run_id: "r1" }, "the graph failed");
  expect(lines()[0]).toMatch(/ERROR: the graph failed \{"run_id":"r1"\}$/);
  expect(lines().slice(1).join("\n")).toMatch(/outer[^]*\n +at .*logger\.test/);
});

test("a terminal that accepts no more output does not stop the server", () => {
  const unwritable = openSync("/dev/null", "r");
  try {
    const destination = openTerminal(unwritable);
    const logger = createLogger({ level: "info", destination: prettyLines(destination) });
    expect(() => {
      logger.info("stopping");
      logger.info("stopped");
    }).not.toThrow();
  } finally {
    closeSync(unwritable);
  }
});

test.each([
  ["a message", (secret: string) => new Error(secret)],
  [
    "a message of several lines",
    (secret: string) => new Error(`one\n    at ${secret} (/app/a.ts:1:2)\nthree`),
  ],
  ["a cause", (secret: string) => new Error("outer", { cause: new Error(secret, { cause: secret }) })],
  ["errors of errors", (secret: string) => new AggregateError([new Error(secret), secret], secret)],
  ["a name and a code", (secret: string) => Object.assign(new Error("x"), { name: secret, code: secret })],
  ["a text that was thrown", (secret: string) => secret],
  ["an object that was thrown", (secret: string) => ({ message: secret })],
])("a graph's error is logged without its message, unless contents are logged: %s", (name, throwing) => {
  const secret = "my number is 4711";
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  for (const contents of [false, true])
    createLogger({ level: "info", contents, destination }).warn(
      { err: markedOfGraph(throwing(secret)) },
      "failed",
    );
  expect(lines[0]).not.toContain("4711");
  if (name !== "an object that was thrown") expect(lines[1]).toContain("4711");
});

test("a graph's error without its message has its class, its code and where it was thrown", () => {
  const { logger, lines } = listeningLogger();
  const error = Object.assign(new TypeError("secret"), { code: "ERR_OF_GRAPH" });
  logger.warn({ err: markedOfGraph(new RangeError("secret", { cause: error })) }, "failed");
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    err: {
      type: "RangeError",
      stack: expect.stringContaining("logger.test.ts:"),
      cause: { type: "TypeError", code: "ERR_OF_GRAPH", stack: expect.stringContaining("logger.test.ts:") },
    },
  });
});
