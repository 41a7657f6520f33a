import {
  AIMessage,
  AIMessageChunk,
  ChatMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
  type BaseMessage,
} from "@langchain/core/messages";
import { Command, Send } from "@langchain/langgraph";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toWireJson } from "../../../src/state/values/wire-json.ts";

const wire = (value: unknown): unknown => JSON.parse(toWireJson(value));

describe("the JSON for clients", () => {
  it("equals JSON.stringify's for any plain value, byte for byte", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(toWireJson(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  it("is one line, whatever the text contains", () => {
    const text = toWireJson({ text: "a\nb\r\u0000\ud800" });
    expect(text).not.toMatch(/[\n\r\0]/);
    expect(JSON.parse(text)).toEqual({ text: "a\nb\r\u0000\ud800" });
  });

  it("has every kind of message flat, with the field names of LangChain's own toDict", () => {
    const messages: BaseMessage[] = [
      new HumanMessage("hello"),
      new HumanMessage({ content: [{ type: "text", text: "hello" }], id: "1", name: "Ann" }),
      new SystemMessage({ content: "be kind", additional_kwargs: { a: { b: 1 } } }),
      new AIMessage({
        id: "2",
        content: "",
        tool_calls: [{ id: "call", name: "search", args: { q: "x" }, type: "tool_call" }],
        usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
        response_metadata: { model: "m" },
      }),
      new AIMessageChunk({
        id: "3",
        content: "part",
        tool_call_chunks: [{ index: 0, name: "s", args: "{" }],
      }),
      new ToolMessage({ content: "found", tool_call_id: "call", artifact: { rows: [1] }, status: "success" }),
      new ChatMessage("hm", "critic"),
      new RemoveMessage({ id: "4" }),
    ];
    for (const message of messages) {
      const { type, data } = message.toDict();
      expect(wire(message)).toEqual(JSON.parse(JSON.stringify({ ...data, type })));
    }
    expect(wire({ deep: [{ messages }] })).toEqual({ deep: [{ messages: messages.map(wire) }] });
  });

  it("contains fields that were set on a message after its creation", () => {
    const message = new AIMessage("hello");
    message.id = "later";
    message.content = "changed";
    expect(wire(message)).toMatchObject({ id: "later", content: "changed", type: "ai" });
  });

  it("recognises the messages of another copy of LangChain by their shape", () => {
    class ForeignMessage {
      lc_serializable = true;
      lc_kwargs = { content: "hi", additionalThing: 1 };
      content = "hi";
      id = "f";
      _getType() {
        return "human";
      }
      toJSON() {
        return { lc: 1, type: "constructor", id: [], kwargs: this.lc_kwargs };
      }
    }
    expect(wire([new ForeignMessage()])).toEqual([
      { type: "human", content: "hi", id: "f", additional_thing: 1 },
    ]);
  });

  it("gives other kinds of values a plain form", () => {
    const date = new Date("2024-05-06T07:08:09.010Z");
    expect(
      wire({
        date,
        never: new Date(Number.NaN),
        set: new Set([1, date]),
        map: new Map([["a", new HumanMessage("x")]]),
        pairs: new Map([[1, "one"]]),
        bytes: new Uint8Array([1, 2, 3]),
        buffer: Buffer.from("abc"),
        big: 12345678901234567890n,
        bigs: [1n],
        error: new TypeError("no"),
        nothing: undefined,
        nan: Number.NaN,
        endless: [Infinity, -Infinity, undefined],
        code: () => 1,
        regexp: /a/g,
      }),
    ).toEqual({
      date: date.toISOString(),
      never: null,
      set: [1, date.toISOString()],
      map: { a: { type: "human", content: "x", additional_kwargs: {}, response_metadata: {} } },
      pairs: [[1, "one"]],
      bytes: "AQID",
      buffer: "YWJj",
      big: "12345678901234567890",
      bigs: ["1"],
      error: { name: "TypeError", message: "no" },
      nan: null,
      endless: [null, null, null],
      regexp: "/a/g",
    });
    expect(toWireJson(undefined)).toBe("null");
    expect(toWireJson(() => 1)).toBe("null");
    expect(toWireJson(1n)).toBe('"1"');
  });

  it("uses the toJSON of LangGraph's own classes", () => {
    expect(
      wire(new Command({ goto: new Send("node", { m: new HumanMessage("x") }), resume: "yes" })),
    ).toMatchObject({
      resume: "yes",
      goto: [{ node: "node", args: { m: { type: "human", content: "x" } } }],
    });
  });

  it("keeps a key named __proto__ as data", () => {
    const value = JSON.parse('{"__proto__": {"polluted": true}, "a": 1}') as object;
    expect(toWireJson(value)).toBe('{"__proto__":{"polluted":true},"a":1}');
    const withMessage = JSON.parse('{"__proto__": {"list": [1]}}') as Record<string, unknown>;
    const inner = Object.getOwnPropertyDescriptor(withMessage, "__proto__")?.value as Record<string, unknown>;
    inner.when = new Date(0);
    expect(toWireJson(withMessage)).toBe('{"__proto__":{"list":[1],"when":"1970-01-01T00:00:00.000Z"}}');
  });

  it("does not change its input", () => {
    const value = { list: [new Date(0), { deep: new HumanMessage("x") }] };
    const copy = structuredClone({ list: [value.list[0]] });
    toWireJson(value);
    expect(value.list[0]).toEqual(copy.list[0]);
    expect((value.list[1] as { deep: unknown }).deep).toBeInstanceOf(HumanMessage);
  });

  it("allows one object in several places, and marks one that contains itself", () => {
    const shared = { a: 1 };
    expect(wire([shared, shared, { shared }])).toEqual([{ a: 1 }, { a: 1 }, { shared: { a: 1 } }]);
    const cyclic: Record<string, unknown> = {};
    cyclic.self = [cyclic];
    expect(wire({ cyclic })).toEqual({ cyclic: { self: ["[Circular]"] } });
  });

  it("terminates with objects that contain themselves in many ways", () => {
    const twice: Record<string, unknown> = {};
    Object.assign(twice, { left: twice, right: { up: twice } });
    expect(wire(twice)).toEqual({ left: "[Circular]", right: { up: "[Circular]" } });
    const people = Array.from({ length: 30 }, (_, index) => ({ index, friends: [] as object[] }));
    for (const person of people) person.friends.push(...people);
    expect(toWireJson(people).length).toBeLessThan(100_000_000);
  });

  it("refuses nesting that no parser could read", () => {
    let deep: unknown[] = [];
    for (let level = 0; level < 5_000; level++) deep = [deep];
    expect(() => toWireJson(deep)).toThrow("nested deeper than");
  });
});
