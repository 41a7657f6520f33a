import { expect, test } from "vitest";
import { createBlocks, type BlockEvent, type Slice } from "../../../../src/engine/events/protocol/blocks.ts";

const tellBlocks = (slices: readonly Slice[]): BlockEvent[] => {
  const published: BlockEvent[] = [];
  const blocks = createBlocks((event) => published.push(event));
  for (const slice of slices) blocks.add(slice);
  blocks.end();
  return published;
};
const text = (value: string): Slice => ({ key: "text", block: { type: "text", text: value } });
const call = (index: number, args: string, fields: object = {}): Slice => ({
  key: `tool ${index}`,
  block: { type: "tool_call_chunk", index, args, ...fields },
});
const finished = (published: readonly BlockEvent[]) =>
  published.flatMap((event) => (event.event === "content-block-finish" ? [event.content] : []));

test("a block starts only after the previous one has finished, in whatever order their pieces arrive", () => {
  const published = tellBlocks([
    text("a"),
    call(0, '{"x":', { id: "1", name: "f" }),
    call(1, '{"y":', { id: "2", name: "g" }),
    call(0, "1}"),
    call(1, "2}"),
    text("b"),
  ]);
  expect(published.map(({ event, index }) => `${event.slice("content-block-".length)} ${index}`)).toEqual([
    "start 0",
    "delta 0",
    "finish 0",
    "start 1",
    "delta 1",
    "delta 1",
    "finish 1",
    "start 2",
    "delta 2",
    "delta 2",
    "finish 2",
    "start 3",
    "delta 3",
    "finish 3",
  ]);
  expect(finished(published)).toEqual([
    { type: "text", text: "a" },
    { type: "tool_call", id: "1", name: "f", args: { x: 1 } },
    { type: "tool_call", id: "2", name: "g", args: { y: 2 } },
    { type: "text", text: "b" },
  ]);
});

test("pieces without an index or an id continue the previous call", () => {
  const published = tellBlocks([
    { key: "tool 1", block: { type: "tool_call_chunk", id: "1", name: "f", args: '{"x"' } },
    { key: "tool ", block: { type: "tool_call_chunk", args: ":1}" } },
  ]);
  expect(finished(published)).toEqual([{ type: "tool_call", id: "1", name: "f", args: { x: 1 } }]);
});

test("a call without arguments is complete", () => {
  expect(finished(tellBlocks([call(0, "", { id: "1", name: "f" })]))).toEqual([
    { type: "tool_call", id: "1", name: "f", args: {} },
  ]);
});

test.each(["[1]", "1", '"text"', "{", "null"])(
  "arguments that are not an object make an invalid call: %s",
  (args) => {
    expect(finished(tellBlocks([call(0, args, { id: "1", name: "f" })]))).toMatchObject([
      { type: "invalid_tool_call", id: "1", name: "f", args },
    ]);
  },
);

const deltas = (published: readonly BlockEvent[]) =>
  published.flatMap((event) => (event.event === "content-block-delta" ? [event] : []));

test("each piece of a call's arguments is sent once, in the form of both generations of clients", () => {
  const pieces = ['{"x":"', ...Array.from({ length: 1_000 }, () => "abcd"), '"}'];
  const published = tellBlocks(
    pieces.map((args, place) => call(0, args, place === 0 ? { id: "1", name: "f" } : {})),
  );
  expect(deltas(published)).toEqual(
    pieces.map((args) => ({
      event: "content-block-delta",
      index: 0,
      delta: { type: "tool-call-delta", args },
      content: { type: "tool_call_chunk", args },
    })),
  );
  expect(finished(published)).toMatchObject([{ args: { x: "abcd".repeat(1_000) } }]);
});

test("an id or a name after the first piece is sent when it arrives, without arguments", () => {
  const published = tellBlocks([
    call(0, "{", { id: "1" }),
    call(0, "}", { id: "1", name: "f", index: 3 }),
    call(0, ""),
  ]);
  expect(deltas(published).map(({ delta }) => delta)).toEqual([
    { type: "tool-call-delta", args: "{" },
    { type: "block-delta", fields: { type: "tool_call_chunk", name: "f" } },
    { type: "tool-call-delta", args: "}" },
  ]);
  expect(finished(published)).toEqual([{ type: "tool_call", id: "1", name: "f", args: {} }]);
});

test("a call of a tool that the provider executes is sent in the same pieces", () => {
  const published = tellBlocks([
    { key: "tool 0", block: { type: "server_tool_call_chunk", id: "1", name: "f", args: '{"x":' } },
    { key: "tool 0", block: { type: "server_tool_call_chunk", args: "1}" } },
  ]);
  expect(deltas(published).map(({ delta, content }) => [delta, content?.type])).toEqual([
    [{ type: "tool-call-delta", args: '{"x":' }, "server_tool_call_chunk"],
    [{ type: "tool-call-delta", args: "1}" }, "server_tool_call_chunk"],
  ]);
  expect(finished(published)).toEqual([{ type: "server_tool_call", id: "1", name: "f", args: { x: 1 } }]);
});

test("a block that arrives whole is sent with its finish, and starts without large fields", () => {
  expect(
    tellBlocks([
      { key: "image", block: { type: "image", mimeType: "image/png", data: "iVBO" } },
      text("that is it"),
    ]),
  ).toMatchObject([
    { event: "content-block-start", index: 0, content: { type: "image", mimeType: "image/png" } },
    {
      event: "content-block-finish",
      index: 0,
      content: { type: "image", mimeType: "image/png", data: "iVBO" },
    },
    { event: "content-block-start", index: 1 },
    { event: "content-block-delta", index: 1 },
    { event: "content-block-finish", index: 1 },
  ]);
});
