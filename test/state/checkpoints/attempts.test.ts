import { AIMessage, HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { uuid6, type BaseCheckpointSaver, type Checkpoint } from "@langchain/langgraph-checkpoint";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LeaseLostError, StateLostError } from "../../../src/platform/domain/errors.ts";
import { freeUnreferenced } from "../../../src/state/checkpoints/upkeep.ts";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";
import { eventually } from "../../helpers/conditions.ts";
import { collected } from "../../helpers/collected.ts";
import { isSomeWaiting } from "../../helpers/locks.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

const metadata = { source: "loop" as const, step: 0, parents: {} };
const aCheckpoint = (values: Record<string, unknown>, id: string = uuid6(0)): Checkpoint => ({
  v: 4,
  id,
  ts: new Date().toISOString(),
  channel_values: values,
  channel_versions: Object.fromEntries(Object.keys(values).map((channel) => [channel, 1])),
  versions_seen: {},
});
const at = (threadId: string, checkpointId?: string) => ({
  configurable: { thread_id: threadId, checkpoint_ns: "", checkpoint_id: checkpointId },
});
const put = (
  saver: BaseCheckpointSaver,
  threadId: string,
  values: Record<string, unknown>,
  parentId?: string,
) => {
  const checkpoint = aCheckpoint(values);
  return saver
    .put(at(threadId, parentId), checkpoint, metadata, checkpoint.channel_versions)
    .then((config) => config.configurable?.checkpoint_id as string);
};
const countRows = async (threadId: string): Promise<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const table of ["checkpoints", "checkpoint_writes", "checkpoint_contents"]) {
    const [row] = await opened.database.query<{ count: number }>(
      `select count(*)::integer as count from threadloom.${table} where thread_id = $1`,
      [threadId],
    );
    counts[table] = row?.count ?? 0;
  }
  return counts;
};

/** Answers with the number of messages so far. */
const chat = () =>
  new StateGraph(MessagesAnnotation)
    .addNode("answer", ({ messages }) => ({
      messages: [
        new AIMessage(`This is answer number ${messages.length}, and it is neither short nor long.`),
      ],
    }))
    .addEdge("__start__", "answer")
    .addEdge("answer", "__end__");

const turn = async (saver: BaseCheckpointSaver, threadId: string, text: string): Promise<BaseMessage[]> => {
  const graph = chat().compile({ checkpointer: saver });
  const { messages } = await graph.invoke(
    { messages: [new HumanMessage(text)] },
    { configurable: { thread_id: threadId } },
  );
  return messages;
};

describe("the saver of an attempt", () => {
  it("stores the checkpoints of the current attempt, with the run that wrote them", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt({ ...run, metadata: { graph_id: "chat" } });
    const id = await put(saver, run.threadId, { a: 1 });
    await saver.flush();
    const head = await opened.storage.readHead(run.threadId);
    expect(head).toMatchObject({ checkpointId: id, runId: run.runId });
    expect(head?.metadata).toEqual({ ...metadata, graph_id: "chat", run_id: run.runId });
    expect(await opened.storage.latestOfRun(run.threadId, run.runId)).toBe(id);
    expect(await opened.storage.latestOfRun(run.threadId, randomUUID())).toBeUndefined();
  });

  it("shows whether the newest checkpoint is the run's, or only older ones, whatever subgraphs stored", async () => {
    const run = await aRunningRun(opened.database);
    const placeOf = (runId: string) => opened.storage.placeOfRun(run.threadId, runId);
    expect(await placeOf(run.runId)).toBe("none");
    const saver = opened.storage.saverForAttempt(run);
    await put(saver, run.threadId, { a: 1 });
    await saver.flush();
    const next = await aRunningRun(opened.database, run.threadId);
    expect([await placeOf(run.runId), await placeOf(next.runId)]).toEqual(["newest", "none"]);
    const other = opened.storage.saverForAttempt(next);
    const inSubgraph = { configurable: { thread_id: run.threadId, checkpoint_ns: "sub:1" } };
    await other.put(inSubgraph, aCheckpoint({ a: 2 }), metadata, { a: 1 });
    await other.flush();
    expect([await placeOf(run.runId), await placeOf(next.runId)]).toEqual(["newest", "none"]);
    await put(other, run.threadId, { a: 2 });
    await other.flush();
    expect([await placeOf(run.runId), await placeOf(next.runId)]).toEqual(["overtaken", "newest"]);
    await opened.storage.deleteRun(run.threadId, next.runId);
    expect([await placeOf(run.runId), await placeOf(next.runId)]).toEqual(["newest", "none"]);
  });

  it("stores nothing after another attempt has taken over, and then refuses every checkpoint and read", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    await put(saver, run.threadId, { a: 1 });
    await saver.flush();
    const before = await countRows(run.threadId);
    await opened.database.query("update threadloom.runs set attempt = 2 where run_id = $1", [run.runId]);

    const id = await put(saver, run.threadId, {
      list: [new HumanMessage("x".repeat(600))],
      big: "y".repeat(5_000),
    });
    await saver.putWrites(at(run.threadId, id), [["a", 2]], randomUUID());
    await expect(saver.flush()).rejects.toBeInstanceOf(LeaseLostError);
    expect(saver.failed.aborted).toBe(true);
    expect(saver.failed.reason).toBeInstanceOf(LeaseLostError);
    expect(await countRows(run.threadId)).toEqual(before);
    await expect(put(saver, run.threadId, { a: 3 })).rejects.toBeInstanceOf(LeaseLostError);
    // LangGraph would not handle a rejection before the end of its loop, which the next checkpoint brings.
    await saver.putWrites(at(run.threadId, id), [["a", 2]], "task");
    await expect(saver.getTuple(at(run.threadId))).rejects.toBeInstanceOf(LeaseLostError);
    await expect(saver.flush()).rejects.toBeInstanceOf(LeaseLostError);
    expect(await countRows(run.threadId)).toEqual(before);
  });

  it("stores nothing for an ended or deleted run", async () => {
    const run = await aRunningRun(opened.database);
    await opened.database.query("update threadloom.runs set status = 'interrupted' where run_id = $1", [
      run.runId,
    ]);
    const ended = opened.storage.saverForAttempt(run);
    await put(ended, run.threadId, { a: 1 });
    await expect(ended.flush()).rejects.toBeInstanceOf(LeaseLostError);
    await opened.database.query("delete from threadloom.runs where run_id = $1", [run.runId]);
    const gone = opened.storage.saverForAttempt({ ...run, durability: "sync" });
    await expect(put(gone, run.threadId, { a: 1 })).rejects.toBeInstanceOf(LeaseLostError);
    expect(await opened.storage.readHead(run.threadId)).toBeUndefined();
  });

  it("waits for a takeover that has begun, and then stores nothing", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    let flushed: Promise<void> | undefined;
    await opened.database.transaction(async (transaction) => {
      await transaction.query("update threadloom.runs set attempt = attempt + 1 where run_id = $1", [
        run.runId,
      ]);
      await put(saver, run.threadId, { a: 1 });
      flushed = saver.flush();
      flushed.catch(() => undefined);
      // The statement waits behind the takeover before that commits.
      await eventually("the statement waits", () => isSomeWaiting((text) => opened.database.query(text)));
    });
    await expect(flushed).rejects.toBeInstanceOf(LeaseLostError);
    expect(await opened.storage.readHead(run.threadId)).toBeUndefined();
  });

  it("waits for the commit with durability sync, and for nothing otherwise", async () => {
    const run = await aRunningRun(opened.database);
    const sync = opened.storage.saverForAttempt({ ...run, durability: "sync" });
    const first = await put(sync, run.threadId, { a: 1 });
    expect((await opened.anotherProcess().readHead(run.threadId))?.checkpointId).toBe(first);
    const lazy = opened.storage.saverForAttempt(run);
    const ids = [first];
    for (let count = 0; count < 20; count++)
      ids.push(await put(lazy, run.threadId, { a: count }, ids.at(-1)));
    await lazy.flush();
    const history = await collected(opened.storage.readHistory(run.threadId, "", { limit: 100 }));
    expect(history.map((checkpoint) => checkpoint.checkpointId)).toEqual(ids.toReversed());
  });

  it("flushes only when the open statement has committed, although nothing else waits", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    let isFlushed = false;
    let flushed: Promise<void> | undefined;
    await opened.database.transaction(async (transaction) => {
      await transaction.query("select from threadloom.runs where run_id = $1 for update", [run.runId]);
      await put(saver, run.threadId, { a: 1 });
      await eventually("the statement waits", () => isSomeWaiting((text) => opened.database.query(text)));
      flushed = saver.flush().then(() => void (isFlushed = true));
      await opened.database.query("select 1");
      expect(isFlushed).toBe(false);
    });
    await flushed;
    expect((await countRows(run.threadId))["checkpoints"]).toBe(1);
  });

  it("stores nothing on a checkpoint that a crash of the database removed", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    const list = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, index) => ({ text: `${from + index} `.repeat(100) }));
    const before = await put(saver, run.threadId, { list: list(0, 3) });
    await saver.flush();
    const crashed = list(3, 6);
    const lost = await put(saver, run.threadId, { list: [...list(0, 3), ...crashed] }, before);
    await saver.flush();
    // A crash removes the last commit, which did not wait for the disk.
    await opened.database.query("delete from threadloom.checkpoints where checkpoint_id = $1", [lost]);
    await freeUnreferenced(opened.database, run.threadId);
    // A checkpoint of another thread, or of a subgraph, does not count.
    await opened.database.query(
      `insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, metadata, names, record, seq)
       select thread_id, namespace, $2, '{}', $2, '', 1
       from (values ($1::uuid, 'subgraph'), (gen_random_uuid(), '')) as elsewhere (thread_id, namespace)`,
      [run.threadId, lost],
    );
    await put(saver, run.threadId, { list: [...list(0, 3), ...crashed, ...list(6, 9)] }, lost);
    await expect(saver.flush()).rejects.toThrow(StateLostError);

    const head = await opened.storage.readHead(run.threadId);
    expect(head?.checkpointId).toBe(before);
    expect(JSON.parse(head?.values.get("list") ?? "")).toEqual(list(0, 3));
    const again = opened.storage.saverForAttempt(run);
    const tuple = await again.getTuple(at(run.threadId));
    const values = { list: [...(tuple?.checkpoint.channel_values.list as unknown[]), ...list(20, 22)] };
    await put(again, run.threadId, values, before);
    await again.flush();
    for (const storage of [opened.storage, opened.anotherProcess()]) {
      expect(JSON.parse((await storage.readHead(run.threadId))?.values.get("list") ?? "")).toEqual([
        ...list(0, 3),
        ...list(20, 22),
      ]);
    }
  });

  it("sends together everything that arrives during a statement", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    const inserts = async (): Promise<number> => {
      const [row] = await opened.database.query<{ count: number }>(
        "select count(distinct xmin::text)::integer as count from threadloom.checkpoints where thread_id = $1",
        [run.threadId],
      );
      return row?.count ?? 0;
    };
    let parent: string | undefined;
    for (let count = 0; count < 50; count++) {
      parent = await put(
        saver,
        run.threadId,
        { list: Array.from({ length: count }, () => "x".repeat(50)) },
        parent,
      );
      void saver.putWrites(at(run.threadId, parent), [["list", count]], randomUUID());
    }
    await saver.flush();
    // Writes stored together with their checkpoint need no row of their own.
    expect(await countRows(run.threadId)).toMatchObject({ checkpoints: 50, checkpoint_writes: 0 });
    const history = await collected(opened.storage.readHistory(run.threadId, "", { limit: 50 }));
    expect(history.map(({ pendingWrites }) => pendingWrites.map(({ value }) => value))).toEqual(
      Array.from({ length: 50 }, (_, index) => [String(49 - index)]),
    );
    expect(await inserts()).toBeLessThan(10);
  });

  it("reads its own writes, also before they are committed", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    const id = await put(saver, run.threadId, { a: [1, 2, 3] });
    void saver.putWrites(at(run.threadId, id), [["a", "written"]], "task");
    const tuple = await saver.getTuple(at(run.threadId));
    expect(tuple?.checkpoint.channel_values).toEqual({ a: [1, 2, 3] });
    expect(tuple?.pendingWrites).toEqual([["task", "a", "written"]]);
  });

  it("keeps a task's first writes, and the last of the special ones, like every saver", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    const id = await put(saver, run.threadId, { a: 1 });
    const task = randomUUID();
    const rounds = [
      [
        ["a", "first"],
        ["__interrupt__", "one"],
      ],
      [
        ["a", "second"],
        ["b", "later"],
        ["__interrupt__", "two"],
      ],
    ] as Array<Array<[string, unknown]>>;
    for (const writes of rounds) {
      await saver.putWrites(at(run.threadId, id), writes, task);
      await saver.flush();
    }
    const expected = [
      [task, "__interrupt__", "two"],
      [task, "a", "first"],
      [task, "b", "later"],
    ];
    expect((await saver.getTuple(at(run.threadId)))?.pendingWrites).toEqual(expected);
    // The same in one statement.
    const again = await put(saver, run.threadId, { a: 1 }, id);
    for (const writes of rounds) void saver.putWrites(at(run.threadId, again), writes, task);
    expect((await saver.getTuple(at(run.threadId)))?.pendingWrites).toEqual(expected);
  });
});

describe("rolling a run back", () => {
  it("removes the data that it stored, and nothing else", async () => {
    const first = await aRunningRun(opened.database);
    const { threadId } = first;
    const saver = opened.storage.saverForAttempt(first);
    await turn(saver, threadId, "a question that is to stay");
    await saver.flush();
    const before = await collected(opened.storage.readHistory(threadId, "", { limit: 100 }));
    const rows = await countRows(threadId);

    const second = await aRunningRun(opened.database, threadId);
    const other = opened.storage.saverForAttempt(second);
    await turn(other, threadId, `a question that is taken back ${"x".repeat(3_000)}`);
    // The writes of a resumed run on the checkpoint that it resumes.
    await other.putWrites(at(threadId, before[0]?.checkpointId), [["__resume__", "yes"]], randomUUID());
    await other.flush();
    expect((await opened.storage.readHead(threadId))?.checkpointId).not.toBe(before[0]?.checkpointId);

    await opened.storage.deleteRun(threadId, second.runId);
    expect(await collected(opened.storage.readHistory(threadId, "", { limit: 100 }))).toEqual(before);
    expect(await collected(opened.anotherProcess().readHistory(threadId, "", { limit: 100 }))).toEqual(
      before,
    );
    expect(await countRows(threadId)).toEqual(rows);
  });

  it("lets the thread continue, also in a process that has the removed state in its cache", async () => {
    const first = await aRunningRun(opened.database);
    const { threadId } = first;
    const remembering = opened.anotherProcess();
    const saver = opened.storage.saverForAttempt(first);
    await turn(saver, threadId, "one");
    await saver.flush();
    const second = await aRunningRun(opened.database, threadId);
    const other = opened.storage.saverForAttempt(second);
    await turn(other, threadId, "to be taken back");
    await other.flush();
    await remembering.readHead(threadId);
    await opened.storage.deleteRun(threadId, second.runId);
    const third = await aRunningRun(opened.database, threadId);
    const next = opened.anotherProcess().saverForAttempt(third);
    await turn(next, threadId, "two");
    await next.flush();
    const texts = async (storage = opened.storage): Promise<string[]> => {
      const head = await storage.readHead(threadId);
      return (JSON.parse(head?.values.get("messages") ?? "[]") as BaseMessage[]).map(({ content }) =>
        String(content),
      );
    };
    expect(await texts()).toEqual(["one", expect.stringContaining("1"), "two", expect.stringContaining("3")]);
    expect(await texts(remembering)).toEqual(await texts());
    expect(await texts(opened.anotherProcess())).toEqual(await texts());
  });
});

describe("copying and pruning a thread", () => {
  it("copies every checkpoint, and the copies are independent", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    for (const text of ["one", "two", "three"]) await turn(saver, run.threadId, text);
    await saver.flush();
    const history = await collected(opened.storage.readHistory(run.threadId, "", { limit: 100 }));
    const copy = randomUUID();
    await opened.storage.copyThread(run.threadId, copy);
    expect(await collected(opened.storage.readHistory(copy, "", { limit: 100 }))).toEqual(
      history.map((checkpoint) => ({ ...checkpoint, threadId: copy })),
    );
    expect(await countRows(copy)).toEqual(await countRows(run.threadId));
    await turn(opened.storage.saver, copy, "only here");
    expect(await collected(opened.storage.readHistory(run.threadId, "", { limit: 100 }))).toEqual(history);
    await opened.storage.deleteThread(run.threadId);
    expect(Object.values(await countRows(run.threadId))).toEqual([0, 0, 0]);
    expect((await turn(opened.storage.saver, copy, "and here")).length).toBe(10);
  });

  it("keeps only the newest checkpoint, and frees unused values", async () => {
    const run = await aRunningRun(opened.database);
    const { threadId } = run;
    const saver = opened.storage.saverForAttempt(run);
    for (let count = 0; count < 10; count++)
      await turn(saver, threadId, `question ${count} ${"x".repeat(2_500)}`);
    // A branch that the head does not contain.
    const history = await collected(opened.storage.readHistory(threadId, "", { limit: 100 }));
    const old = history.find((checkpoint) => checkpoint.metadata.step === 3);
    await saver.flush();
    const head = await opened.storage.readHead(threadId);
    await put(
      saver,
      threadId,
      { messages: [new HumanMessage("x".repeat(3_000))], other: "z".repeat(9_000) },
      old?.checkpointId,
    );
    await saver.flush();
    await opened.storage.deleteRun(threadId, randomUUID());
    const newest = await opened.storage.readHead(threadId);
    expect(newest?.checkpointId).not.toBe(head?.checkpointId);

    await opened.storage.keepLatest(threadId);
    expect(await collected(opened.anotherProcess().readHistory(threadId, "", { limit: 100 }))).toEqual([
      { ...newest, parentCheckpointId: null },
    ]);
    expect(await countRows(threadId)).toEqual({
      checkpoints: 1,
      checkpoint_writes: 0,
      // The message, and the value beside it.
      checkpoint_contents: 2,
    });
    expect((await turn(opened.storage.saver, threadId, "it goes on")).length).toBe(3);
  });

  it("keeps all elements of a long conversation when its history is pruned", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    for (let count = 0; count < 12; count++) await turn(saver, run.threadId, `question ${count}`);
    await saver.flush();
    const before = await opened.storage.readHead(run.threadId);
    await opened.storage.keepLatest(run.threadId);
    expect((await opened.anotherProcess().readHead(run.threadId))?.values).toEqual(before?.values);
    expect((await turn(saver, run.threadId, "one more")).length).toBe(26);
  });

  it("measures the size of a thread", async () => {
    const run = await aRunningRun(opened.database);
    const saver = opened.storage.saverForAttempt(run);
    for (const text of ["one", "two"]) await turn(saver, run.threadId, text);
    await saver.flush();
    const storage = await opened.storage.storage(run.threadId);
    expect(storage.thread_id).toBe(run.threadId);
    expect(storage.checkpoints.count).toBe(6);
    expect(storage.pending_writes.count).toBeGreaterThan(0);
    expect(storage.channel_values.by_channel.messages?.versions).toBe(5);
    expect(storage.total_bytes).toBe(
      storage.checkpoints.bytes + storage.channel_values.bytes + storage.pending_writes.bytes,
    );
    // The writes of tasks are in the rows of their checkpoints, and must not count as values, too.
    const [rows] = await opened.database.query<{ bytes: number }>(
      `select (
        (select coalesce(sum(octet_length(record) + octet_length(coalesce(c.metadata_text, (n.metadata || c.metadata)::text))
            + coalesce(octet_length(writes), 0)), 0)
          from threadloom.checkpoints c join threadloom.checkpoint_names n on n.hash = c.names where thread_id = $1)
        + (select coalesce(sum(octet_length(content) + 16 * coalesce(cardinality(contents), 0)), 0) from threadloom.checkpoint_contents where thread_id = $1)
        + (select coalesce(sum(octet_length(writes)), 0) from threadloom.checkpoint_writes where thread_id = $1)
      )::integer as bytes`,
      [run.threadId],
    );
    expect(storage.total_bytes).toBe(rows?.bytes);
    expect(await opened.storage.storage(randomUUID())).toMatchObject({
      total_bytes: 0,
      checkpoints: { count: 0 },
    });
  });
});

describe("a run with durability exit that has nothing left to do", () => {
  const rowsOf = (threadId: string) =>
    opened.database.query<{ id: string; parent: string | null; run: string }>(
      `select checkpoint_id as id, parent_id as parent, run_id as run from threadloom.checkpoints
       where thread_id = $1 order by checkpoint_id`,
      [threadId],
    );
  const execute = async (run: { threadId: string; runId: string; attempt: number }, input: unknown) => {
    const saver = opened.anotherProcess().saverForAttempt({ ...run, durability: "exit" });
    const { threadId: thread_id } = run;
    const graph = chat().compile({ checkpointer: saver });
    const options = { configurable: { thread_id }, durability: "exit" as const };
    await graph.invoke(input as { messages: BaseMessage[] } | null, options);
    await saver.flush();
  };

  it("leaves the checkpoint of the attempt that died before its end was stored unchanged", async () => {
    const run = await aRunningRun(opened.database);
    await execute(run, { messages: [new HumanMessage("hi")] });
    const before = await rowsOf(run.threadId);
    await opened.database.query("update threadloom.runs set attempt = 2 where run_id = $1", [run.runId]);
    await execute({ ...run, attempt: 2 }, null);
    expect(await rowsOf(run.threadId)).toEqual(before);
    for (const { id, parent } of before) expect(parent).not.toBe(id);
  });

  it("takes over no checkpoint of another run, whose rollback would delete it", async () => {
    const first = await aRunningRun(opened.database);
    await execute(first, { messages: [new HumanMessage("hi")] });
    const second = await aRunningRun(opened.database, first.threadId);
    await execute(second, null);
    expect((await rowsOf(first.threadId)).map(({ run }) => run)).toEqual([first.runId]);
  });
});

describe("a conversation", () => {
  it("costs the same rows and bytes at every turn", async () => {
    const run = await aRunningRun(opened.database);
    const { threadId } = run;
    const bytesOfTurns: number[] = [];
    const rowsOfTurns: number[] = [];
    for (let count = 0; count < 200; count++) {
      const saver = opened.storage.saverForAttempt(run);
      await turn(
        saver,
        threadId,
        `This is question number ${String(count).padStart(3, "0")}, as long as the others.`,
      );
      await saver.flush();
      if (count % 50 === 0 || count % 50 === 49) {
        bytesOfTurns.push((await opened.storage.storage(threadId)).total_bytes);
        rowsOfTurns.push(Object.values(await countRows(threadId)).reduce((sum, rows) => sum + rows, 0));
      }
    }
    const growth = (figures: number[]) => [0, 2, 4, 6].map((index) => figures[index + 1]! - figures[index]!);
    // Ids are random, and now and then a node of a list's tree is full. Growth with the length would be a factor of 2.
    for (const [, ...grown] of [growth(rowsOfTurns), growth(bytesOfTurns)])
      expect(Math.max(...grown) / Math.min(...grown)).toBeLessThan(1.4);
  });
});
