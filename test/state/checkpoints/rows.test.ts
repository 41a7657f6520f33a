import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, Send, StateGraph } from "@langchain/langgraph";
import { uuid6, type Checkpoint } from "@langchain/langgraph-checkpoint";
import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import { openRow, readThread } from "../../../src/state/checkpoints/rows.ts";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";
import { collected } from "../../helpers/collected.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

const metadata = { source: "loop" as const, step: 0, parents: {} };
const aCheckpoint = (values: Record<string, unknown>): Checkpoint => ({
  v: 4,
  id: uuid6(0),
  ts: "2026-01-02T03:04:05.678Z",
  channel_values: values,
  channel_versions: Object.fromEntries(Object.keys(values).map((channel) => [channel, 1])),
  versions_seen: { node: { a: 1 } },
});
const at = (threadId: string, checkpointId?: string) => ({
  configurable: { thread_id: threadId, checkpoint_ns: "", checkpoint_id: checkpointId },
});

/** How often a text occurs in all stored data of a thread. */
const occurrences = async (threadId: string, text: string): Promise<number> => {
  const { encryption } = opened.database;
  const rows = await readThread(opened.database, threadId);
  const contents = await opened.database.query<{ hash: string; content: string }>(
    "select hash, content from threadloom.checkpoint_contents where thread_id = $1",
    [threadId],
  );
  const texts = [
    ...rows.flatMap((row) => {
      const { record, writes } = openRow(encryption, row);
      return [record, ...writes.map((write) => write.text)];
    }),
    ...contents.map(({ hash, content }) =>
      encryption.decryptedValue("checkpoint_contents", "content", content, { hash }),
    ),
  ];
  return texts.reduce((sum, each) => sum + each.split(text).length - 1, 0);
};

describe("the stored data of a turn", () => {
  const QUESTION = `How long is a question${", if nobody asks it twice".repeat(30)}?`;
  const answers = {
    "a message with an id": () =>
      new AIMessage({
        content: `An answer that a node has given${", under its own id".repeat(40)}.`,
        id: randomUUID(),
      }),
    "a long message": () => new AIMessage(`An answer ${"that goes on and on, ".repeat(500)}and ends.`),
  };

  it.each(Object.entries(answers))(
    "contains %s once, and the question as input, as its task's write and as a message",
    async (_, answer) => {
      const message = answer();
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("answer", () => ({ messages: [message] }))
        .addEdge("__start__", "answer");
      const run = await aRunningRun(opened.database);
      const saver = opened.storage.saverForAttempt(run);
      const input = { messages: [{ role: "user", content: QUESTION }] };
      await graph.compile({ checkpointer: saver }).invoke(input, at(run.threadId));
      await saver.flush();

      expect(await occurrences(run.threadId, QUESTION)).toBe(3);
      expect(await occurrences(run.threadId, message.content as string)).toBe(1);
      const history = await collected(opened.anotherProcess().readHistory(run.threadId, "", { limit: 10 }));
      const written = history
        .flatMap(({ pendingWrites }) => pendingWrites)
        .filter(({ channel }) => channel === "messages");
      expect(written.map(({ value }) => JSON.parse(value ?? "") as unknown)).toMatchObject([
        [{ type: "ai", content: message.content }],
        input.messages,
      ]);
      // The written message had no id unless the node set one; the list's message has one.
      const [[writtenMessage]] = written.map(({ value }) => JSON.parse(value ?? "") as [{ id?: string }]) as [
        [{ id?: string }],
      ];
      const [, kept] = JSON.parse(history[0]?.values.get("messages") ?? "") as [unknown, { id: string }];
      expect(kept.id).toBe(message.id);
      expect(writtenMessage.id ?? undefined).toBe(_ === "a message with an id" ? message.id : undefined);
    },
  );

  it("refers to nothing that a later statement stores", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt({ ...run, durability: "sync" });
    const message = new HumanMessage("It is written by a task first, and becomes part of the list later.");
    const first = aCheckpoint({ messages: [] });
    await saver.put(at(run.threadId), first, metadata, first.channel_versions);
    await saver.putWrites(at(run.threadId, first.id), [["messages", [message]]], randomUUID());
    const [pending] = (await opened.anotherProcess().readHead(run.threadId))?.pendingWrites ?? [];
    expect(JSON.parse(pending?.value ?? "")).toMatchObject([{ type: "human", content: message.content }]);
  });
});

describe("a task's write", () => {
  it("is read back unchanged, whatever it contains", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    const checkpoint = aCheckpoint({ a: 1 });
    const written = ["\u2028", "\u2029", "\r", "\n", "\u0085"].map(
      (end) => `like a reference,@0,3${end}there,@0,3`,
    );
    await saver.put(at(run.threadId), checkpoint, metadata, checkpoint.channel_versions);
    await saver.putWrites(
      at(run.threadId, checkpoint.id),
      written.map((text) => ["a", text]),
      "task",
    );
    await saver.flush();
    const tuple = await opened.anotherProcess().saver.getTuple(at(run.threadId));
    expect(tuple?.pendingWrites).toEqual(written.map((text) => ["task", "a", text]));
  });

  it.each(["$type", "lc"])(
    "is read back as a message also with a field '%s', before it had an id",
    async (field) => {
      const run = await aRunningRun(opened.database);
      const saver = opened.storage.saverForAttempt(run);
      const message = new AIMessage({ content: "x".repeat(300), [field]: "date" } as { content: string });
      const first = aCheckpoint({ a: 1 });
      await saver.put(at(run.threadId), first, metadata, first.channel_versions);
      await saver.putWrites(at(run.threadId, first.id), [["messages", [message]]], "task");
      message.id = "given later";
      const second = aCheckpoint({ messages: [message] });
      await saver.put(at(run.threadId, first.id), second, metadata, second.channel_versions);
      await saver.flush();
      const tuple = await opened.anotherProcess().saver.getTuple(at(run.threadId, first.id));
      const [[, , [found]]] = tuple?.pendingWrites as [[string, string, [AIMessage]]];
      expect(found).toBeInstanceOf(AIMessage);
      expect(found.content).toBe(message.content);
      expect(found.id).toBeUndefined();
    },
  );
});

describe("a checkpoint that is put again", () => {
  it("keeps the writes of its tasks", async () => {
    const { saver } = opened.storage;
    const threadId = randomUUID();
    const run = await aRunningRun(opened.database);
    const attempt = opened.storage.saverForAttempt(run);
    const input = "an input that is long enough to be referred to by the task that reads it";
    const one = aCheckpoint({ a: input });
    for (const writer of [saver, attempt]) {
      const thread = writer === saver ? threadId : run.threadId;
      const stored = writer.put(at(thread), one, metadata, one.channel_versions);
      const written = writer.putWrites(at(thread, one.id), [["a", input]], "task");
      await Promise.all([stored, written]);
      await attempt.flush();
      const other = { ...one, channel_values: { a: "shorter" } };
      await writer.put(at(thread), other, { ...metadata, step: 1 }, one.channel_versions);
      await attempt.flush();

      const tuple = await opened.anotherProcess().saver.getTuple(at(thread));
      expect(tuple?.checkpoint.channel_values).toEqual({ a: "shorter" });
      expect(tuple?.metadata).toMatchObject({ step: 1 });
      expect(tuple?.pendingWrites).toEqual([["task", "a", input]]);
    }
  });
});

describe("messages with fields that have a meaning in the storage format", () => {
  it.each(["$type", "lc"])("are read back with their field '%s'", async (field) => {
    const { saver } = opened.storage;
    const threadId = randomUUID();
    const message = new HumanMessage({ content: "hello", id: "1", [field]: "date" } as { content: string });
    const stored = aCheckpoint({ messages: [message] });
    await saver.put(at(threadId), stored, metadata, stored.channel_versions);
    const tuple = await opened.anotherProcess().saver.getTuple(at(threadId));
    const [found] = tuple?.checkpoint.channel_values.messages as [HumanMessage];
    expect(found).toBeInstanceOf(HumanMessage);
    expect(found).toMatchObject({ content: "hello", id: "1" });
    expect((found.lc_kwargs as Record<string, unknown>)[field]).toBe("date");
  });
});

describe("values that share parts", () => {
  it("are read although their texts together exceed any string", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    const messages = Array.from(
      { length: 100 },
      (_, id) => new HumanMessage({ content: "x".repeat(10_000), id: `${id}` }),
    );
    const first = aCheckpoint({ messages });
    await saver.put(at(run.threadId), first, metadata, first.channel_versions);
    const tasks = Array.from({ length: 600 }, (_, item) => new Send("node", { messages, item }));
    const second = aCheckpoint({ messages, __pregel_tasks: tasks });
    await saver.put(at(run.threadId, first.id), second, metadata, { __pregel_tasks: 1 });
    await saver.flush();
    const tuple = await opened.anotherProcess().saver.getTuple(at(run.threadId));
    const read = tuple?.checkpoint.channel_values.__pregel_tasks as Array<
      Send<string, { messages: HumanMessage[]; item: number }>
    >;
    expect(read).toHaveLength(600);
    expect(read[599]?.args.item).toBe(599);
    expect(read[599]?.args.messages[99]?.content).toBe("x".repeat(10_000));
  });

  it("are read with long keys and long strings at every place", async () => {
    const { saver } = opened.storage;
    const threadId = randomUUID();
    const long = (text: string): string => text.repeat(5_000);
    const value = { [long("k")]: [long("a"), "b", [long("a")]], c: { d: long("a"), 2: long("e") } };
    const stored = aCheckpoint({ value, list: [value, long("a"), long("f")] });
    await saver.put(at(threadId), stored, metadata, stored.channel_versions);
    const tuple = await opened.anotherProcess().saver.getTuple(at(threadId));
    expect(tuple?.checkpoint.channel_values).toEqual({ value, list: [value, long("a"), long("f")] });
  });

  it("wait for the disk where a crash would take a part without its checkpoint", async () => {
    const run = await aRunningRun(opened.database);
    const asynchronous: unknown[] = [];
    const grouped: Database["grouped"] = (statement, source) => {
      asynchronous.push((source as { asynchronous: boolean }).asynchronous);
      return opened.database.grouped(statement, source);
    };
    const storage = createCheckpointStorage({
      database: { ...opened.database, grouped },
      logger: pino({ level: "silent" }),
    });
    const saver = storage.saverForAttempt(run);
    const first = aCheckpoint({ messages: [] });
    await saver.put(at(run.threadId), first, metadata, first.channel_versions);
    await saver.flush();
    for (const text of ["short", "x".repeat(1_000)]) {
      await saver.putWrites(at(run.threadId, first.id), [["messages", [text]]], randomUUID());
      await saver.flush();
    }
    expect(asynchronous).toEqual([true, true, false]);
  });
});
