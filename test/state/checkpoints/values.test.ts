import { Document } from "@langchain/core/documents";
import {
  AIMessage,
  AIMessageChunk,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { Command, Overwrite, Send } from "@langchain/langgraph";
import { DeltaSnapshot, uuid6, type Checkpoint } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMPARED_ELEMENTS } from "../../../src/state/checkpoints/lists.ts";
import { encode, treeText } from "../../../src/state/values/encoding.ts";
import { equalsTree } from "../../../src/state/values/comparing.ts";
import { reviveFully } from "../revive-fully.ts";
import { openStorage, type OpenStorage } from "./open-storage.ts";
import { collected } from "../../helpers/collected.ts";
import { IS_ENCRYPTED } from "../../helpers/encryption.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

const metadata = { source: "loop" as const, step: 0, parents: {} };
const aCheckpoint = (values: Record<string, unknown>, version = 1): Checkpoint => ({
  v: 4,
  id: uuid6(version),
  ts: new Date().toISOString(),
  channel_values: values,
  channel_versions: Object.fromEntries(Object.keys(values).map((channel) => [channel, version])),
  versions_seen: {},
});
const at = (threadId: string, checkpointId?: string) => ({
  configurable: { thread_id: threadId, checkpoint_ns: "", checkpoint_id: checkpointId },
});
/** Through the database and back, read by a process with an empty cache. */
const stored = async (values: Record<string, unknown>): Promise<Record<string, unknown>> => {
  const threadId = randomUUID();
  const checkpoint = aCheckpoint(values);
  await opened.storage.saver.put(at(threadId), checkpoint, metadata, checkpoint.channel_versions);
  const tuple = await opened.anotherProcess().saver.getTuple(at(threadId));
  return tuple?.checkpoint.channel_values ?? {};
};

const allMessages = () => [
  new HumanMessage("hello"),
  new HumanMessage({
    content: [
      { type: "text", text: "hi" },
      { type: "image_url", image_url: "data:" },
    ],
    name: "Ann",
  }),
  new SystemMessage({ content: "be kind", id: "s", additional_kwargs: { deep: { when: new Date(0) } } }),
  new AIMessage({
    id: "a",
    content: "",
    tool_calls: [{ id: "c", name: "search", args: { q: ["x"] }, type: "tool_call" }],
    invalid_tool_calls: [{ id: "d", name: "bad", args: "{", error: "no" }],
    usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
    response_metadata: { model: "m" },
  }),
  new AIMessageChunk({
    id: "k",
    content: "part",
    tool_call_chunks: [{ index: 0, id: "t", name: "s", args: "{" }],
  }),
  new AIMessage({ content: [{ type: "text", text: "v1" }], response_metadata: { output_version: "v1" } }),
  new ToolMessage({ content: "found", tool_call_id: "c", artifact: { rows: [1] }, status: "error" }),
  new FunctionMessage({ content: "r", name: "f" }),
  new ChatMessage("hm", "critic"),
  new RemoveMessage({ id: "gone" }),
];

describe("values of any kind", () => {
  it("are read back unchanged", async () => {
    const values = {
      nothing: undefined,
      null: null,
      deepUndefined: { a: undefined, b: [undefined, 1] },
      numbers: [0, -0, 1.5, Number.NaN, Infinity, -Infinity, Number.MAX_SAFE_INTEGER],
      big: 12345678901234567890n,
      date: new Date("2024-05-06T07:08:09.010Z"),
      noDate: [new Date(Number.NaN)],
      map: new Map<unknown, unknown>([
        ["a", new Map([[1, new Date(1)]])],
        [{ key: true }, undefined],
      ]),
      set: new Set([1, "a", new HumanMessage("in a set")]),
      bytes: new Uint8Array([0, 1, 255]),
      buffer: Buffer.from("abc"),
      floats: new Float32Array([1.5, -2]),
      regexp: /a+b/giu,
      url: new URL("https://example.com/a?b=c"),
      send: [new Send("node", { message: new HumanMessage("x") })],
      command: new Command({
        goto: ["a", new Send("b", { c: 1 })],
        update: { d: 1 },
        resume: "yes",
        graph: "__parent__",
      }),
      overwrite: new Overwrite([1, 2]),
      interrupt: [{ id: "i", value: { question: "sure?" } }],
      lookalikes: [
        {
          lc: 1,
          type: "constructor",
          id: ["langchain_core", "messages", "HumanMessage"],
          kwargs: { content: "no" },
        },
        { $type: "date", value: "2024" },
        { $type: "object", value: { $type: "map", value: [] } },
        { lc: { $type: 1 } },
      ],
      text: 'NUL \u0000, lone \ud800 and \udc00, pair 🙂, quotes " \\ \\u0000, lines \n \r \u2028, \u001e \u001f',
      long: "x\u0000y".repeat(10_000),
    };
    const back = await stored(values);
    expect(back).toStrictEqual(values);
    expect(back.buffer).toBeInstanceOf(Buffer);
  });

  it("include messages of every type, with all their fields and classes", async () => {
    for (const message of allMessages()) {
      const { one, list } = (await stored({ one: message, list: [message, ...allMessages()] })) as {
        one: unknown;
        list: unknown[];
      };
      for (const back of [one, list[0]]) {
        expect(back).toBeInstanceOf(message.constructor);
        expect(Object.getPrototypeOf(back)).toBe(Object.getPrototypeOf(message));
        expect((back as HumanMessage).toDict()).toEqual(message.toDict());
      }
    }
  });

  it("include errors by name and message, without their stack, which contains paths", async () => {
    const error = Object.assign(new TypeError("no", { cause: new RangeError("deep") }), { code: 42 });
    class OwnError extends Error {
      override name = "OwnError";
    }
    const back = (await stored({ errors: [error, new OwnError("own")] })).errors as Array<
      Error & { code?: number }
    >;
    expect(back[0]).toBeInstanceOf(TypeError);
    expect(back[0]).toMatchObject({ name: "TypeError", message: "no", code: 42 });
    expect(back[0]?.cause).toMatchObject({ name: "RangeError", message: "deep" });
    expect(back[1]).toMatchObject({ name: "OwnError", message: "own" });
    expect(back[0]?.stack).not.toContain("values.test");
  });

  it("include other classes that LangChain serializes, at any depth", async () => {
    const prompt = ChatPromptTemplate.fromMessages([["human", "{question}"]]);
    const back = await stored({ prompt, nested: { map: new Map([["p", prompt]]), list: [prompt, prompt] } });
    const nested = back.nested as { map: Map<string, unknown>; list: unknown[] };
    for (const revived of [back.prompt, nested.map.get("p"), ...nested.list]) {
      expect(revived).toBeInstanceOf(ChatPromptTemplate);
      expect((await (revived as ChatPromptTemplate).invoke({ question: "why?" })).toString()).toBe(
        "Human: why?",
      );
    }
    const document = new Document({ pageContent: "page", metadata: { a: 1 }, id: "1" });
    expect((await stored({ document })).document).toEqual({ ...document });
  });

  it("include subclasses of messages, stored as the class that they extend", async () => {
    class OwnMessage extends AIMessage {
      static override lc_name() {
        return "OwnMessage";
      }
    }
    const back = (await stored({ own: new OwnMessage({ content: "x", id: "1" }) })).own;
    expect(back).toBeInstanceOf(AIMessage);
    expect(back).toMatchObject({ content: "x", id: "1" });
  });

  it("with keys named __proto__ stay data, and no prototype changes", async () => {
    const hostile = JSON.parse(
      '{"__proto__": {"polluted": true}, "constructor": {"prototype": 1}}',
    ) as object;
    const values = Object.defineProperty({ hostile, list: [hostile, "x".repeat(600)] }, "__proto__", {
      value: { polluted: true },
      enumerable: true,
    });
    const back = await stored(values);
    expect(Object.keys(back).sort()).toEqual(["__proto__", "hostile", "list"]);
    expect(JSON.stringify(back.hostile)).toBe(JSON.stringify(hostile));
    expect(JSON.stringify((back.list as unknown[])[0])).toBe(JSON.stringify(hostile));
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect((back as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it("that contain themselves are written as by the official savers, and too deep ones are refused with a clear error", async () => {
    const cyclic: Record<string, unknown> = { a: 1 };
    cyclic.self = cyclic;
    expect((await stored({ cyclic })).cyclic).toEqual({ a: 1, self: "[Circular]" });
    const twice: Record<string, unknown> = {};
    Object.assign(twice, { left: twice, right: { up: twice } });
    expect((await stored({ twice })).twice).toEqual({ left: "[Circular]", right: { up: "[Circular]" } });
    let deep: unknown = 1;
    for (let level = 0; level < 3_000; level++) deep = [deep];
    await expect(stored({ deep })).rejects.toThrow("nested deeper than 1000 levels");
  });

  it("in metadata that jsonb can't hold are kept, and the rest can still be searched", async (context) => {
    context.skip(IS_ENCRYPTED, "Nothing is found by metadata that are encrypted.");
    const threadId = randomUUID();
    const odd = { ...metadata, writes: { text: "NUL \u0000 and \ud83d" }, user: "ann", when: undefined };
    await opened.storage.saver.put(at(threadId), aCheckpoint({ a: 1 }), odd as never, { a: 1 });
    const found = [];
    for await (const tuple of opened.storage.saver.list(at(threadId), { filter: { user: "ann" } }))
      found.push(tuple);
    expect(found.map((tuple) => tuple.metadata)).toEqual([odd]);
    for await (const _ of opened.storage.saver.list(at(threadId), { filter: { user: "bob" } }))
      expect.unreachable();
    expect((await opened.storage.readHead(threadId))?.metadata).toMatchObject({ writes: odd.writes });
  });

  it("in metadata are found by a text that only looks like an escape, and not by another", async (context) => {
    context.skip(IS_ENCRYPTED, "Nothing is found by metadata that are encrypted.");
    const threadId = randomUUID();
    const literal = String.raw`\u0000 \\u0000 \ud83d`;
    const given = { ...metadata, user: literal };
    await opened.storage.saver.put(at(threadId), aCheckpoint({ a: 1 }), given as never, { a: 1 });
    const found = async (user: string): Promise<number> => {
      let count = 0;
      for await (const _ of opened.storage.saver.list(at(threadId), { filter: { user } })) count += 1;
      return count;
    };
    expect(await found(literal)).toBe(1);
    expect(await found(literal.replaceAll(/u0000|ud83d/g, "ufffd"))).toBe(0);
  });

  it("in pending writes are kept", async () => {
    const threadId = randomUUID();
    const { saver } = opened.storage;
    const checkpoint = aCheckpoint({ a: 1 });
    await saver.put(at(threadId), checkpoint, metadata, { a: 1 });
    const value = { message: new HumanMessage("NUL \u0000"), date: new Date(3), nothing: undefined };
    await saver.putWrites(at(threadId, checkpoint.id), [["a", value]], "no uuid");
    await saver.putWrites(at(threadId, checkpoint.id), [["__interrupt__", [value]]], "no uuid");
    const tuple = await opened.anotherProcess().saver.getTuple(at(threadId));
    expect(tuple?.pendingWrites).toEqual([
      ["no uuid", "__interrupt__", [value]],
      ["no uuid", "a", value],
    ]);
  });

  it("have the same form for clients as in a stream", async () => {
    const threadId = randomUUID();
    const values = {
      list: allMessages(),
      date: new Date(5),
      map: new Map([["a", 1]]),
      empty: [],
      none: undefined,
    };
    const checkpoint = aCheckpoint(values);
    await opened.storage.saver.put(at(threadId), checkpoint, metadata, checkpoint.channel_versions);
    const head = await opened.storage.readHead(threadId);
    const parsed = Object.fromEntries(
      [...head!.values].map(([channel, text]) => [channel, JSON.parse(text)]),
    );
    expect(parsed).toMatchObject({ date: "1970-01-01T00:00:00.005Z", map: { a: 1 }, empty: [] });
    expect(parsed.list[0]).toEqual({
      type: "human",
      content: "hello",
      additional_kwargs: {},
      response_metadata: {},
    });
    expect(parsed.list.map(({ type }: { type: string }) => type)).toEqual(
      allMessages().map((m) => m.getType()),
    );
  });

  it("never create a class that stored text names but LangChain doesn't allow", async () => {
    const records = [
      { lc: 1, type: "constructor", id: ["langchain_core", "nonsense", "Thing"], kwargs: {} },
      { lc: 1, type: "secret", id: ["DATABASE_URL"] },
      { lc: 1, type: "constructor", id: ["node", "child_process", "exec"], kwargs: {} },
      { $type: "bytes", of: "constructor", value: "AQI=" },
      { $type: "error", name: "constructor", message: "x" },
      { $type: "whatever", value: 1 },
    ];
    const [nonsense, secret, exec, bytes, error, whatever] = (await reviveFully(records)) as unknown[];
    expect([nonsense, secret, exec, whatever]).toEqual([records[0], records[1], records[2], records[5]]);
    expect(bytes).toEqual(new Uint8Array([1, 2]));
    expect(Object.getPrototypeOf(error)).toBe(Error.prototype);
  });

  it("are the same for any JSON, and their tree resembles their text", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.anything({ withDate: true, withMap: true, withSet: true, withBigInt: true }),
        async (value) => {
          const text = treeText(encode(value));
          expect(await reviveFully(JSON.parse(text))).toEqual(value);
          expect(equalsTree(value, JSON.parse(text))).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("include a snapshot of a delta channel", async () => {
    const back = (await stored({ delta: new DeltaSnapshot(allMessages()) })).delta as DeltaSnapshot;
    expect(back).toBeInstanceOf(DeltaSnapshot);
    expect((back.value as HumanMessage[]).map((m) => m.toDict())).toEqual(
      allMessages().map((m) => m.toDict()),
    );
  });
});

describe("the cache of this process", () => {
  const conversation = (count: number) =>
    Array.from(
      { length: count },
      (_, index) => new HumanMessage({ id: String(index), content: `message ${index} `.repeat(5) }),
    );

  it("never returns its own objects: whatever a reader changes, the next reader finds the stored state", async () => {
    const threadId = randomUUID();
    const { saver } = opened.storage;
    const value = () => ({
      messages: [
        ...conversation(20),
        new AIMessage({
          content: "x",
          id: "t",
          tool_calls: [{ id: "c", name: "n", args: { deep: { list: [1] } } }],
        }),
      ],
      object: { deep: { list: [1, 2] }, text: "y".repeat(3_000) },
      map: new Map([["a", { b: 1 }]]),
    });
    const checkpoint = aCheckpoint(value());
    await saver.put(at(threadId), checkpoint, metadata, checkpoint.channel_versions);
    await saver.putWrites(at(threadId, checkpoint.id), [["object", value().object]], "task");
    const read = async () => (await saver.getTuple(at(threadId)))!;
    const listed = async () => {
      for await (const tuple of saver.list(at(threadId))) return tuple;
      return expect.unreachable();
    };
    for (const reader of [read, listed, read, listed]) {
      const { checkpoint: found, pendingWrites, metadata: foundMetadata } = await reader();
      const values = found.channel_values as ReturnType<typeof value>;
      expect(values).toEqual(value());
      expect(pendingWrites).toEqual([["task", "object", value().object]]);
      values.messages[3]!.content = "changed";
      values.messages[20]!.additional_kwargs.changed = true;
      (values.messages[20] as AIMessage).tool_calls![0]!.args.deep.list.push(2);
      values.messages.splice(5, 3);
      values.object.deep.list.push(3);
      values.map.get("a")!.b = 2;
      (pendingWrites![0]![2] as ReturnType<typeof value>["object"]).deep.list.length = 0;
      foundMetadata!.parents.changed = "x";
      found.channel_versions.messages = 99;
      found.versions_seen.changed = {};
    }
    expect((await read()).metadata).toEqual(metadata);
    expect((await read()).checkpoint.channel_versions).toEqual(checkpoint.channel_versions);
  });

  it("is not affected by changes to values after they were stored", async () => {
    const threadId = randomUUID();
    const values = { messages: conversation(20), object: { list: [1] } };
    const checkpoint = aCheckpoint(values);
    await opened.storage.saver.put(at(threadId), checkpoint, metadata, checkpoint.channel_versions);
    values.messages[0]!.content = "changed";
    values.messages[1]!.additional_kwargs.changed = true;
    values.object.list.push(2);
    for (const { saver } of [opened.storage, opened.anotherProcess()]) {
      const found = await saver.getTuple(at(threadId));
      expect(found?.checkpoint.channel_values).toEqual({ messages: conversation(20), object: { list: [1] } });
    }
  });

  /** Changes one of many messages in place, adds one, and returns the changed one as the next checkpoint contains it. */
  const afterChange = async (
    index: number,
    change: (message: HumanMessage) => void,
  ): Promise<HumanMessage> => {
    const threadId = randomUUID();
    const { saver } = opened.storage;
    const first = aCheckpoint({ messages: conversation(COMPARED_ELEMENTS + 50) });
    await saver.put(at(threadId), first, metadata, first.channel_versions);
    const found = await saver.getTuple(at(threadId));
    const messages = found?.checkpoint.channel_values.messages as HumanMessage[];
    change(messages[index]!);
    const second = aCheckpoint({ messages: [...messages, new HumanMessage("new")] }, 2);
    await saver.put(found!.config, second, metadata, second.channel_versions);
    const after = await opened.anotherProcess().saver.getTuple(at(threadId));
    const before = await opened.anotherProcess().saver.getTuple(at(threadId, first.id));
    expect(before?.checkpoint.channel_values.messages).toEqual(conversation(COMPARED_ELEMENTS + 50));
    return (after?.checkpoint.channel_values.messages as HumanMessage[])[index]!;
  };

  it("notices any change in place of the last 64 messages", async () => {
    expect((await afterChange(50, (message) => void (message.content = "changed"))).content).toBe("changed");
    expect((await afterChange(60, (message) => message._updateId("changed"))).id).toBe("changed");
    const deep = await afterChange(50, (message) => void (message.additional_kwargs.changed = { a: 1 }));
    expect(deep.additional_kwargs).toEqual({ changed: { a: 1 } });
  });

  it.each([
    [[], {}],
    [{}, []],
    [null, {}],
    [{}, null],
    ["", []],
    [0, -0],
    [-0, 0],
    [{ a: [] }, { a: {} }],
    [{ a: { b: 1 } }, { a: { b: 2 } }],
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
  ])(
    "stores an element that another object replaces, however equal they look: %j, then %j",
    async (one, other) => {
      for (const [length, index] of [
        [3, 1],
        [COMPARED_ELEMENTS + 50, 1],
      ] as const) {
        const threadId = randomUUID();
        const { saver } = opened.storage;
        const listOf = (value: unknown) =>
          Array.from({ length }, (_, number) => ({ number, value: number === index ? value : "same" }));
        const first = aCheckpoint({ list: listOf(one) });
        await saver.put(at(threadId), first, metadata, first.channel_versions);
        const found = await saver.getTuple(at(threadId));
        const list = (found?.checkpoint.channel_values.list as unknown[]).with(index, listOf(other)[index]);
        const second = aCheckpoint({ list }, 2);
        await saver.put(found!.config, second, metadata, second.channel_versions);
        const after = await opened.anotherProcess().saver.getTuple(at(threadId));
        const stored = (after?.checkpoint.channel_values.list as Array<{ value: unknown }>)[index]!.value;
        expect(stored).toEqual(other);
        expect(JSON.stringify(stored)).toBe(JSON.stringify(other));
      }
    },
  );

  it("stores elements with functions and undefined properties once", async () => {
    const threadId = randomUUID();
    const { saver } = opened.storage;
    const anElement = (id: number) => ({ id, gone: undefined, run: () => id });
    const first = aCheckpoint({
      list: Array.from({ length: COMPARED_ELEMENTS + 50 }, (_, id) => anElement(id)),
    });
    await saver.put(at(threadId), first, metadata, first.channel_versions);
    const second = aCheckpoint({ list: [...(first.channel_values.list as unknown[]), anElement(200)] }, 2);
    await saver.put(at(threadId, first.id), second, metadata, second.channel_versions);
    const [stored] = await opened.database.query<{ count: number }>(
      `select count(*)::integer as count from threadloom.checkpoint_contents
       where thread_id = $1 and content like '{"id":%'`,
      [threadId],
    );
    // A leaf of the first list, and one of the last element.
    if (!opened.database.encryption.isOn) expect(stored?.count).toBe(2);
  });

  it("does not notice a change in place of an older one, which stays as it was stored", async () => {
    const message = await afterChange(3, (message) => void (message.content = "changed"));
    expect(message.content).not.toBe("changed");
  });

  it("may be too small for anything: then all data is read", async () => {
    const small = await openStorage(1);
    try {
      const threadId = randomUUID();
      const checkpoint = aCheckpoint({ messages: conversation(50), big: "x".repeat(5_000) });
      await small.storage.saver.put(at(threadId), checkpoint, metadata, checkpoint.channel_versions);
      for (let round = 0; round < 3; round++) {
        const found = await small.storage.saver.getTuple(at(threadId));
        expect(found?.checkpoint.channel_values).toEqual({
          messages: conversation(50),
          big: "x".repeat(5_000),
        });
        expect((await collected(small.storage.readHistory(threadId, "", { limit: 5 }))).length).toBe(1);
      }
    } finally {
      await small.close();
    }
  });
});

describe("impossible ids", () => {
  it("cause a not-found result, and never an error", async () => {
    const { saver } = opened.storage;
    const threadId = randomUUID();
    for (const [ns, id] of [
      ["\u0000", undefined],
      ["a\u0000b", randomUUID()],
      ["", "no uuid"],
      ["", "'; drop table checkpoints; --"],
    ] as Array<[string, string | undefined]>) {
      const config = { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } };
      expect(await saver.getTuple(config)).toBeUndefined();
      for await (const _ of saver.list(config)) expect.unreachable();
      expect(await opened.storage.readAt(threadId, ns, id ?? randomUUID())).toBeUndefined();
      expect(
        await collected(opened.storage.readHistory(threadId, ns, { limit: 1, beforeCheckpointId: id })),
      ).toEqual([]);
    }
    expect(
      await collected(
        opened.storage.readHistory(threadId, "", { limit: 1, metadataFilter: { run_id: "x" } }),
      ),
    ).toEqual([]);
  });
});
