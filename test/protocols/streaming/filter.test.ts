import { describe, expect, test } from "vitest";
import {
  createFilter,
  namespaceOf,
  type ThreadEvent,
} from "../../../src/protocols/streaming/reading/frames.ts";
import { eventStreamBody } from "../../../src/protocols/streaming/schemas.ts";

/** The events that a connection has requested. The rules are those of both SDKs, which filter once more. */

const event = (method: string, namespace: string[] = [], data: unknown = {}): ThreadEvent => ({
  seq: 1,
  eventId: "1",
  method,
  namespace,
  params: JSON.stringify({ namespace, timestamp: 1, data }),
});
const matches = (filter: object, ...events: ThreadEvent[]): boolean[] =>
  events.map((one) => createFilter(eventStreamBody.parse(filter)).matches(one));

describe("a filter", () => {
  test("selects channels by their method, and questions as `input`", () => {
    expect(
      matches({ channels: ["values", "input"] }, event("values"), event("updates"), event("input.requested")),
    ).toEqual([true, false, true]);
  });

  test("selects all custom events, or those of a name", () => {
    const events = [
      event("custom", [], { name: "a" }),
      event("custom", [], { name: "b" }),
      event("custom", [], 1),
    ];
    expect(matches({ channels: ["custom"] }, ...events)).toEqual([true, true, true]);
    expect(matches({ channels: ["custom:a"] }, ...events)).toEqual([true, false, false]);
    expect(matches({ channels: ["custom:constructor"] }, ...events)).toEqual([false, false, false]);
  });

  test("finds the name of a custom event before its data, and parses no more of the event", () => {
    const name = 'a "name", \\ and \u{1F600}';
    const named = event("custom", ['sub"]:1'], { name, payload: { name: "other" } });
    const cut = { ...named, params: `${named.params.slice(0, -10)}` };
    expect(matches({ channels: [`custom:${name}`] }, named, cut)).toEqual([true, true]);
    expect(matches({ channels: ["custom:other"] }, named, cut)).toEqual([false, false]);
    const nested = event("custom", [], { payload: { name: "a" } });
    expect(matches({ channels: ["custom:a"] }, nested, { ...nested, params: '{"data":1}' })).toEqual([
      false,
      false,
    ]);
  });

  test("selects namespaces by prefix; a segment without a colon stands for all executions of that name", () => {
    const events = [
      event("values", []),
      event("values", ["a:1"]),
      event("values", ["a:1", "b:2"]),
      event("values", ["ab"]),
    ];
    const channels = ["values"];
    expect(matches({ channels, namespaces: [] }, ...events)).toEqual([true, true, true, true]);
    expect(matches({ channels, namespaces: [["a"]] }, ...events)).toEqual([false, true, true, false]);
    expect(matches({ channels, namespaces: [["a:2"], ["ab"]] }, ...events)).toEqual([
      false,
      false,
      false,
      true,
    ]);
    expect(matches({ channels, namespaces: [["a", "b"]] }, ...events)).toEqual([false, false, true, false]);
  });

  test("counts the depth from the prefix", () => {
    const events = [event("values", []), event("values", ["a:1"]), event("values", ["a:1", "b:2"])];
    const channels = ["values"];
    expect(matches({ channels, namespaces: [[]], depth: 1 }, ...events)).toEqual([true, true, false]);
    expect(matches({ channels, namespaces: [["a"]], depth: 0 }, ...events)).toEqual([false, true, false]);
  });
});

test.each([[[]], [["a:1"]], [[']"\\', "[", "b"]], [["\\"]], [["ü", ""]]])(
  "the namespace is read from the start of the params: %j",
  (namespace) => {
    expect(namespaceOf(JSON.stringify({ namespace, timestamp: 1, data: { namespace: ["other"] } }))).toEqual(
      namespace,
    );
  },
);
