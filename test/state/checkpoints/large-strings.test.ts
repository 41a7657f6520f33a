import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph, Annotation } from "@langchain/langgraph";
import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { contentHash } from "../../../src/state/checkpoints/contents.ts";
import { LARGE_STRING_CHARACTERS } from "../../../src/state/values/large-strings.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createEventLog } from "../../../src/engine/events/log.ts";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import { beforeStrings } from "../../helpers/before-strings.ts";
import { collected } from "../../helpers/collected.ts";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

const aLargeString = (): string => randomBytes(LARGE_STRING_CHARACTERS).toString("base64");
const at = (threadId: string) => ({ configurable: { thread_id: threadId } });

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  report: Annotation<string>(),
  files: Annotation<Record<string, unknown>>(),
});
/** Each node writes the same string in another form. */
const graphWith = (text: string) =>
  new StateGraph(State)
    .addNode("tool", () => ({ messages: [new ToolMessage({ content: text, tool_call_id: "call" })] }))
    .addNode("keep", () => ({ report: text, files: { first: { text }, second: [text] } }))
    .addNode("show", () => ({
      messages: [
        new HumanMessage({
          content: [
            { type: "text", text: "Look:" },
            { type: "text", text },
          ],
        }),
      ],
    }))
    .addEdge("__start__", "tool")
    .addEdge("tool", "keep")
    .addEdge("keep", "show");

/** A thread after a run of this graph, with the run's id. */
const aThreadWith = async (text: string): Promise<{ threadId: string; runId: string }> => {
  const run = await aRunningRun(opened.database);
  const saver = opened.storage.saverForAttempt(run);
  const graph = graphWith(text).compile({ checkpointer: saver });
  await graph.invoke({ messages: [new HumanMessage("Hello")] }, at(run.threadId));
  await saver.flush();
  return run;
};

/** Of the contents that are large strings, or of all others. */
const bytesOf = async (threadId: string, areLarge = true) => {
  const [row] = await opened.database.query<{ bytes: number }>(
    `select coalesce(sum(octet_length(content)), 0)::integer as bytes from threadloom.checkpoint_contents
     where thread_id = $1 and (octet_length(content) >= 32768) = $2`,
    [threadId, areLarge],
  );
  return row?.bytes ?? NaN;
};
const stateOf = async (threadId: string) => {
  const head = await opened.anotherProcess().readHead(threadId);
  return Object.fromEntries(
    [...(head?.values ?? [])].map(([name, text]) => [name, JSON.parse(text) as unknown]),
  );
};

test("a large string is stored once in a thread, in whatever messages, values and writes it is", async () => {
  const text = aLargeString();
  const { threadId } = await aThreadWith(text);
  // The texts of encrypted columns are a third longer.
  expect(await bytesOf(threadId)).toBeLessThan(1.5 * text.length);
  expect(await bytesOf(threadId, false)).toBeLessThan(5_000);
  expect(await stateOf(threadId)).toMatchObject({
    report: text,
    files: { first: { text }, second: [text] },
    messages: [{ content: "Hello" }, { content: text }, { content: [{ text: "Look:" }, { text }] }],
  });
});

test("a history and a graph in another process read the whole strings", async () => {
  const text = aLargeString();
  const { threadId } = await aThreadWith(text);
  const history = await collected(opened.anotherProcess().readHistory(threadId, "", { limit: 10 }));
  expect(history[0]?.values.get("report")).toBe(JSON.stringify(text));
  const written = history.flatMap(({ pendingWrites }) => pendingWrites.map(({ value }) => value ?? ""));
  // The tool's message, the report, the two files and the last message.
  expect(written.join().split(text)).toHaveLength(1 + 5);
  const saver = opened.anotherProcess().saver;
  const { values } = await graphWith("").compile({ checkpointer: saver }).getState(at(threadId));
  const { messages, report } = values as typeof State.State;
  expect(messages[1]).toBeInstanceOf(ToolMessage);
  expect([messages[1]?.content, report]).toEqual([text, text]);
});

test("the storage of a thread counts a large string once", async () => {
  const text = aLargeString();
  const { threadId } = await aThreadWith(text);
  const { total_bytes: total, channel_values: values } = await opened.storage.storage(threadId);
  expect(total).toBeGreaterThan(text.length);
  expect(total).toBeLessThan(1.7 * text.length);
  const sum = Object.values(values.by_channel).reduce((bytes, channel) => bytes + channel.bytes, 0);
  expect(sum).toBeGreaterThan(text.length);
  expect(sum).toBeLessThan(1.7 * text.length);
});

test("a copied thread has its own large strings", async () => {
  const text = aLargeString();
  const { threadId } = await aThreadWith(text);
  const copyId = newId();
  await opened.storage.copyThread(threadId, copyId);
  await opened.storage.deleteThread(threadId);
  expect(await stateOf(copyId)).toMatchObject({ report: text, messages: [{}, { content: text }, {}] });
});

test("a thread that is deleted while its strings are read has neither a state nor events", async () => {
  const text = aLargeString();
  const remove = (threadId: string) => async () => {
    await opened.storage.deleteThread(threadId);
    await opened.database.query("delete from threadloom.threads where thread_id = $1", [threadId]);
  };
  const first = await aThreadWith(text);
  const reading = beforeStrings(opened.database, remove(first.threadId));
  const storage = createCheckpointStorage({ database: reading, logger: pino({ level: "silent" }) });
  expect(await storage.readHead(first.threadId)).toBeUndefined();

  const second = await aThreadWith(text);
  const event = { seq: 0, event: "custom", data: JSON.stringify(text) };
  await createEventLog(opened.database).append({ ...second, turn: 1, attempt: 1 }, [event]);
  const log = createEventLog(beforeStrings(opened.database, remove(second.threadId)));
  const room = { events: 10, bytes: 1_000_000, largeToo: true, wire: "first" } as const;
  expect(await log.read(second, -1, room)).toEqual([]);
});

test("a large string is freed with the last checkpoint that has it, unless an event has it, too", async () => {
  const [gone, logged] = [aLargeString(), aLargeString()];
  const run = await aRunningRun(opened.database);
  const { threadId } = run;
  const saver = opened.storage.saverForAttempt(run);
  const graph = new StateGraph(State)
    .addNode("keep", () => ({ report: gone, files: { logged } }))
    .addNode("forget", () => ({ report: "short", files: {} }))
    .addEdge("__start__", "keep")
    .addEdge("keep", "forget")
    .compile({ checkpointer: saver });
  await graph.invoke({ messages: [] }, at(threadId));
  await saver.flush();
  await opened.database.query(
    `insert into threadloom.run_events (thread_id, run_id, seq, event, data, strings)
     values ($1, $2, 1, 'values', '{}', array[$3]::uuid[])`,
    [threadId, run.runId, contentHash(JSON.stringify(logged), opened.database.encryption)],
  );
  await opened.storage.keepLatest(threadId);
  const left = await bytesOf(threadId);
  expect(left).toBeGreaterThan(logged.length);
  expect(left).toBeLessThan(1.5 * logged.length);
  await opened.database.query("delete from threadloom.run_events where thread_id = $1", [threadId]);
  await opened.storage.keepLatest(threadId);
  expect(await bytesOf(threadId)).toBe(0);
});

test("a rollback frees the large strings of its run alone", async () => {
  const [first, second] = [aLargeString(), aLargeString()];
  const { threadId } = await aThreadWith(first);
  const run = await aRunningRun(opened.database, threadId);
  const saver = opened.storage.saverForAttempt(run);
  await graphWith(second).compile({ checkpointer: saver }).invoke({ messages: [] }, at(threadId));
  await saver.flush();
  await opened.storage.deleteRun(threadId, run.runId);
  expect(await bytesOf(threadId)).toBeLessThan(1.5 * first.length);
  expect(await stateOf(threadId)).toMatchObject({ report: first });
});
