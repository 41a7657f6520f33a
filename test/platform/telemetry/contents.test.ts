import { trace, type Span, type TracerProvider } from "@opentelemetry/api";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { exportedBelow } from "../../../src/graphs/trace/exported-spans.ts";

/** Messages of models as they are exported, however odd they are. */

let attributes: Record<string, unknown>;

beforeEach(() => {
  attributes = {};
  const span = {
    isRecording: () => true,
    setAttribute: (name: string, value: unknown) => void (attributes[name] = value),
  } as unknown as Span;
  const provider = { getTracer: () => ({ startSpan: () => span }) } as unknown as TracerProvider;
  trace.setGlobalTracerProvider(provider);
  onTestFinished(() => trace.disable());
});

const said = (value: () => unknown): string => {
  const span = exportedBelow({ parent: {}, contents: true }).begin("model", "constructor", undefined, 0);
  span.said("input", value);
  return String(attributes["gen_ai.input.messages"]);
};
const fails = (): never => {
  throw new Error("not to be read");
};
const textOf = (content: unknown) => ({ type: "human", content });

test("a message that can't be read hides no other message, and a list that can't be read fails no call", () => {
  const odd = Object.defineProperty({ type: "ai" }, "content", { get: fails });
  const messages = JSON.parse(said(() => [textOf("before"), odd, null, textOf("after")])) as unknown[];
  expect(messages).toEqual([
    { role: "user", parts: [{ type: "text", content: "before" }] },
    { role: "unknown", parts: [] },
    { role: "unknown", parts: [] },
    { role: "user", parts: [{ type: "text", content: "after" }] },
  ]);
  expect(said(fails)).toBe("[]");
  expect(said(() => "no list")).toBe("[]");
});

test("the newest messages are exported, up to 64 KB however many calls of tools they make", () => {
  const calls = Array.from({ length: 10_000 }, (_, call) => ({
    name: "work",
    args: "x".repeat(5_000),
    call,
  }));
  const large = { type: "ai", content: "x".repeat(100_000), tool_calls: calls };
  const text = said(() => [...Array.from({ length: 50 }, () => large), textOf("newest")]);
  expect(text.length).toBeLessThan(66_000);
  const messages = JSON.parse(text) as { role: string }[];
  expect(messages.length).toBeGreaterThan(1);
  expect(messages.at(-1)).toEqual({ role: "user", parts: [{ type: "text", content: "newest" }] });
  const odd = said(() => [{ type: "y".repeat(100_000), content: "", tool_calls: 7 }]);
  expect(odd.length).toBeLessThan(1_000);
});
