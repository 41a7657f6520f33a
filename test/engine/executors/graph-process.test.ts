import { fork } from "node:child_process";
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  startGraphProcess,
  type GraphProcessOptions,
} from "../../../src/engine/executors/process/graph-process.ts";
import { createLogger } from "../../../src/platform/lib/logger.ts";

/** Simulated answers of the system to a fork, and a child that does nothing. */

vi.mock(import("node:child_process"), { spy: true });
const forked = vi.mocked(fork);
const ANSWER_MS = 60_000;

const start = ({ isFailureLogged = false, write = (_line: string): void => undefined } = {}) => {
  const onEnd = vi.fn<GraphProcessOptions["onEnd"]>();
  const graphProcess = startGraphProcess({
    entry: new URL("file:///graphs.js"),
    setup: {} as GraphProcessOptions["setup"],
    heapMegabytes: 100,
    blockedSeconds: 10,
    onMessage: () => undefined,
    onEnd,
    isFailureLogged,
    logger: createLogger({ level: "info", destination: { write } }),
  });
  return { graphProcess, onEnd };
};
const aChild = () => {
  const stdio = Array.from({ length: 5 }, () => new PassThrough());
  const child = Object.assign(new EventEmitter(), {
    pid: 1,
    stdio,
    connected: true,
    send: () => true,
    kill: (signal: string) => child.emit("exit", null, signal),
  });
  forked.mockReturnValueOnce(child as never);
  return child;
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  forked.mockReset();
});

test("a fork that throws, for example without memory, reports asynchronously that the process could not start", async () => {
  const cause = new Error("spawn ENOMEM");
  forked.mockImplementationOnce(() => {
    throw cause;
  });
  const { onEnd } = start();
  expect(onEnd).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(0);
  expect(onEnd.mock.calls).toEqual([["start", "could not be started", cause]]);
});

test("a child without streams, which Node returns when files are exhausted, is reported the same way and can be closed", async () => {
  const cause = new Error("spawn EMFILE");
  const child = new EventEmitter();
  forked.mockReturnValueOnce(child as never);
  const { graphProcess, onEnd } = start();
  child.emit("error", cause);
  await vi.advanceTimersByTimeAsync(0);
  expect(onEnd.mock.calls).toEqual([["start", "could not be started", cause]]);
  await graphProcess.close();
});

test("a process that does not load its graphs is killed after a minute", async () => {
  aChild();
  const { onEnd } = start();
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  expect(onEnd.mock.calls).toEqual([["start", "was killed: it did not load its graphs within 60 seconds"]]);
});

test("a process that has loaded its graphs lives on", async () => {
  const child = aChild();
  const { onEnd } = start();
  child.emit("message", { kind: "ready" });
  const answering = setInterval(() => child.emit("message", { kind: "pong", residentBytes: 1 }), 1_000);
  await vi.advanceTimersByTimeAsync(2 * ANSWER_MS);
  clearInterval(answering);
  expect(onEnd).not.toHaveBeenCalled();
});

test.each([
  { isFailureLogged: false, logged: ["a bracket is missing", "loaded"] },
  { isFailureLogged: true, logged: ["loaded"] },
])(
  "output of a process before it is ready is logged, unless the log already says why others did not start: $isFailureLogged",
  async ({ isFailureLogged, logged }) => {
    const lines: string[] = [];
    const child = aChild();
    start({ isFailureLogged, write: (line) => void lines.push(line) });
    child.stdio[2]!.write("a bracket is missing\n");
    await vi.advanceTimersByTimeAsync(0);
    child.emit("message", { kind: "ready" });
    child.stdio[2]!.write("loaded\n");
    await vi.advanceTimersByTimeAsync(0);
    expect(lines.map((line) => (JSON.parse(line) as { text: string }).text)).toEqual(logged);
  },
);

test("a process that prints without end waits for its pipe, and a second later its output is read on", async () => {
  const { stdio } = aChild();
  const texts: string[] = [];
  start({ write: (line) => void texts.push((JSON.parse(line) as { text: string }).text) });
  stdio[1]!.write(`${"y".repeat(10_000)}\n`.repeat(300));
  await vi.advanceTimersByTimeAsync(10);
  expect(texts).toHaveLength(300);
  stdio[1]!.write("later\n");
  await vi.advanceTimersByTimeAsync(500);
  expect(texts).toHaveLength(300);
  await vi.advanceTimersByTimeAsync(500);
  expect(texts.at(-1)).toBe("later");
});
