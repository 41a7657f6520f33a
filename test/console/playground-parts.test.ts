import { describe, expect, test } from "vitest";
import {
  forksOnPath,
  headOf,
  newestBelow,
  treeOf,
  type Checkpoint,
} from "../../console/src/playground/messages/checkpoint-tree.ts";
import { fileOf } from "../../console/src/playground/messages/file-block.ts";
import { mathIn } from "../../console/src/playground/messages/math-text.ts";
import { rowsOf } from "../../console/src/playground/messages/messages.ts";
import { NO_OPTIONS, withOptions } from "../../console/src/playground/composer/run-options.ts";
import { createTurns } from "../../console/src/playground/messages/turns.ts";
import { readSearch } from "../../console/src/playground/threads/thread-search.ts";

const checkpoint = (id: string, parent: string | undefined, source = "loop"): Checkpoint => ({
  id,
  parent,
  source,
  next: [],
});

describe("the tree of checkpoints", () => {
  /** A message and its answer; an edit of the message; two answers to the edit. */
  const tree = treeOf(
    [
      checkpoint("1", undefined, "input"),
      checkpoint("2", "1"),
      checkpoint("3", "2"),
      checkpoint("4", "1", "input"),
      checkpoint("5", "4"),
      checkpoint("6", "5"),
      checkpoint("7", "5", "fork"),
      checkpoint("8", "7"),
    ],
    true,
  );

  test("has a fork for an edited message, and one for a regenerated answer", () => {
    expect(headOf(tree)?.id).toBe("8");
    expect(forksOnPath(tree, "8")).toEqual([
      { shared: undefined, branches: ["2", "5"], position: 1 },
      { shared: "5", branches: ["6", "8"], position: 1 },
    ]);
    expect(forksOnPath(tree, "3")).toEqual([{ shared: undefined, branches: ["2", "5"], position: 0 }]);
    expect(newestBelow(tree, "5")).toBe("8");
  });

  test("counts a fork of a fork as one more branch, from any branch", () => {
    const more = treeOf([...tree.byId.values(), checkpoint("9", "4", "input"), checkpoint("A", "9")], true);
    expect(forksOnPath(more, "A")).toEqual([{ shared: undefined, branches: ["2", "5", "A"], position: 2 }]);
    expect(forksOnPath(more, "3")[0]).toMatchObject({ branches: ["2", "5", "A"], position: 0 });
  });

  test("invents no branches if the oldest checkpoints were not read", () => {
    const cut = treeOf([checkpoint("5", "4"), checkpoint("6", "5"), checkpoint("3", "2")], false);
    expect(forksOnPath(cut, "6")).toEqual([]);
  });
});

describe("the text of a failed attempt", () => {
  const turn = 2 ** 27;
  const tell = (turns: ReturnType<typeof createTurns>, seq: number, method: string, data: unknown) =>
    turns.add({ seq, method, params: { namespace: [], timestamp: 0, data } } as never);
  const says = (turns: ReturnType<typeof createTurns>, seq: number, id: string) =>
    tell(turns, seq, "messages", { event: "message-start", id });

  test("is left over as soon as the next attempt begins, except for the stored messages", () => {
    const turns = createTurns();
    tell(turns, turn, "values", { messages: [{ id: "asked" }] });
    for (const [place, id] of ["asked", "stored", "half"].entries()) says(turns, turn + 1 + place, id);
    tell(turns, turn + 5, "values", { messages: [{ id: "asked" }, { id: "stored" }] });
    const left = () => ["asked", "stored", "half", "unknown"].filter((id) => turns.isDiscarded(id));
    expect(left()).toEqual([]);
    let changes = 0;
    const stop = turns.subscribe(() => (changes += 1));
    tell(turns, 2 * turn, "lifecycle", { event: "running" });
    expect(left()).toEqual(["half"]);
    expect(changes).toBe(1);
    stop();
    tell(turns, 3 * turn, "lifecycle", { event: "running" });
    expect(changes).toBe(1);
  });

  test("stays if the graph stores no messages, because its messages can't be identified", () => {
    const turns = createTurns();
    says(turns, turn, "half");
    tell(turns, 2 * turn, "values", { constructor: 1 });
    expect(turns.isDiscarded("half")).toBe(false);
    tell(turns, 2 * turn + 1, "values", { messages: [null] });
    expect(turns.isDiscarded("half")).toBe(true);
  });
});

describe("rows of messages", () => {
  test("contain the answers of the tools that a message calls, and stay the same objects while nothing changes", () => {
    const call = { type: "ai", id: "a", tool_calls: [{ id: "call", name: "t", args: {} }] };
    const answer = { type: "tool", id: "b", tool_call_id: "call" };
    const alone = { type: "tool", id: "c", tool_call_id: "constructor" };
    const rows = rowsOf([call, answer, alone], []);
    expect(rows.map(({ message, results }) => [message.id, results.map(({ id }) => id)])).toEqual([
      ["a", ["b"]],
      ["c", []],
    ]);
    expect(rowsOf([call, answer, alone], rows)[0]).toBe(rows[0]);
  });

  test("take in the messages that follow and only call tools, unless branches begin at them", () => {
    const call = (id: string, content = "") => ({
      ...{ type: "ai", id, content, tool_calls: [{ id: `call ${id}`, name: "t", args: {} }] },
    });
    const answer = (id: string) => ({ type: "tool", id: `answer ${id}`, tool_call_id: `call ${id}` });
    const said = { type: "ai", id: "said", content: "Done." };
    const all = [
      ...[call("a", "Let me look."), answer("a"), call("b"), answer("b"), call("c", "And more."), said],
    ];
    const rows = rowsOf(all, []);
    expect(rows.map(({ message, more, results }) => [message.id, more.length, results.length])).toEqual([
      ["a", 1, 2],
      ["c", 0, 0],
      ["said", 0, 0],
    ]);
    expect(rowsOf(all, rows)).toEqual(rows);
    expect(rowsOf(all, rows)[0]).toBe(rows[0]);
    expect(rowsOf(all, [], new Set(["b"])).map(({ key }) => key)).toEqual(["a", "b", "c", "said"]);
  });

  test("have unique keys also if messages have equal ids or none", () => {
    const rows = rowsOf([{ id: "a" }, { id: "a" }, {}, {}], []);
    expect(new Set(rows.map(({ key }) => key)).size).toBe(4);
  });
});

test("formulas are told from prices, code and escaped signs", () => {
  expect(mathIn("It costs $5 and $10.")).toBeUndefined();
  expect(mathIn("No signs")).toBeUndefined();
  expect(mathIn("`$a$` and \\$b\\$")).toBeUndefined();
  expect(mathIn("$a^2$ costs $5, not `$b$`")).toBe("$a^2$ costs \\$5, not `$b$`");
  expect(mathIn("So\n$$x = 1$$\nholds")).toBe("So\n$$\nx = 1\n$$\nholds");
  expect(mathIn("$a$ ".repeat(500))).toBeUndefined();
  expect(mathIn("$".repeat(100_001))).toBeUndefined();
});

test("files in messages are found in the formats of LangChain, OpenAI and Anthropic", () => {
  const data = btoa("%PDF");
  const found = { kind: "file", mimeType: "application/pdf", data, text: undefined, url: undefined };
  expect(
    fileOf({
      ...{ type: "file", source_type: "base64", mime_type: "application/pdf", data },
      metadata: { filename: "a.pdf" },
    }),
  ).toEqual({ ...found, name: "a.pdf" });
  expect(
    fileOf({
      type: "file",
      file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${data}` },
    }),
  ).toEqual({ ...found, name: "a.pdf" });
  expect(
    fileOf({ type: "document", source: { type: "base64", media_type: "application/pdf", data } }),
  ).toEqual({ ...found, name: "File" });
  expect(fileOf({ type: "input_audio", input_audio: { data, format: "wav" } })?.mimeType).toBe("audio/wav");
  expect(fileOf({ type: "file", mimeType: 'text/html" onload=', data: 7 })).toMatchObject({
    mimeType: "application/octet-stream",
    data: undefined,
  });
  expect(fileOf({ type: "constructor" })).toBeUndefined();
});

test("options of runs are added to a command, whose own fields take precedence", () => {
  const options = {
    ...NO_OPTIONS,
    stopBefore: ["agent", "*"],
    stopAfter: ["tools"],
    configurable: { thread: "a", other: 1 },
    recursionLimit: 7,
  };
  expect(
    withOptions({ input: null, config: { configurable: { checkpoint_id: "c", other: 2 } } }, options),
  ).toEqual({
    input: null,
    config: { configurable: { thread: "a", other: 2, checkpoint_id: "c" }, recursion_limit: 7 },
    interrupt_before: "*",
    interrupt_after: ["tools"],
  });
  expect(withOptions({ input: 1 }, NO_OPTIONS)).toEqual({ input: 1 });
});

test("a search for threads is an id, a status, metadata, or words", () => {
  const id = "01a20434-49f5-77db-9ee2-a649be433d5a";
  expect(readSearch(` ${id} `)).toEqual({ ids: [id] });
  expect(readSearch("customer=7")).toEqual({ metadata: { customer: 7 } });
  expect(readSearch("owner: ada")).toEqual({ metadata: { owner: "ada" } });
  expect(readSearch('{"a": {"b": 1}}')).toEqual({ metadata: { a: { b: 1 } } });
  expect(readSearch("status=interrupted")).toEqual({ status: "interrupted" });
  expect(readSearch("status=new")).toEqual({ metadata: { status: "new" } });
  expect(readSearch("The Weather")).toEqual({ words: "the weather" });
  expect(readSearch("  ")).toEqual({});
});
