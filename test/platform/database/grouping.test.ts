import { pino } from "pino";
import { describe, expect, test } from "vitest";
import type { Queryable } from "../../../src/platform/database/database.ts";
import { createGrouping, type GroupedStatement } from "../../../src/platform/database/grouping.ts";

/** A source is a thread's id; its row is the id with the number of threads in its statement. */
const openGrouping = () => {
  const sent: { threads: readonly string[]; answer: (result: unknown) => void }[] = [];
  const send = (threads: readonly string[]): Promise<void> =>
    new Promise((resolve, reject) =>
      sent.push({
        threads,
        answer: (error) => (error === undefined ? resolve() : reject(error as Error)),
      }),
    );
  const locked = new Set<string>();
  const statement: GroupedStatement<string, { thread_id: string; among: number }> = {
    threadOf: (thread) => thread,
    isSeparate: (thread) => thread.startsWith("large"),
    async query(_queryable, threads) {
      await send(threads);
      const held = threads.filter((thread) => threads.length === 1 || !locked.has(thread));
      return held.map((thread) => ({ thread_id: thread, among: threads.length }));
    },
  };
  const grouped = createGrouping({} as Queryable, pino({ level: "silent" }));
  const query = async (thread: string): Promise<string> => {
    const row = await grouped(statement, thread);
    return row === undefined ? "none" : `${row.thread_id} of ${row.among}`;
  };
  return { sent, locked, query };
};

const threadsOf = ({ sent }: ReturnType<typeof openGrouping>) => sent.map(({ threads }) => threads);
/** Lets the promises of an answer settle. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("statements that are asked for while one is under way", () => {
  test("share the next one, and each gets its own row", async () => {
    const group = openGrouping();
    const first = group.query("a");
    expect(threadsOf(group)).toEqual([["a"]]);
    const others = [group.query("b"), group.query("c")];
    expect(threadsOf(group)).toEqual([["a"]]);
    group.sent[0]!.answer(undefined);
    expect(await first).toBe("a of 1");
    await settle();
    expect(threadsOf(group)).toEqual([["a"], ["b", "c"]]);
    group.sent[1]!.answer(undefined);
    expect(await Promise.all(others)).toEqual(["b of 2", "c of 2"]);
  });

  test("are sent again alone if their row was locked", async () => {
    const group = openGrouping();
    group.locked.add("c");
    void group.query("a");
    const others = [group.query("b"), group.query("c")];
    group.sent[0]!.answer(undefined);
    await settle();
    group.sent[1]!.answer(undefined);
    await settle();
    expect(threadsOf(group)).toEqual([["a"], ["b", "c"], ["c"]]);
    group.sent[2]!.answer(undefined);
    expect(await Promise.all(others)).toEqual(["b of 2", "c of 1"]);
  });

  test.each([
    ["bad value", "22P02"],
    ["deadlock detected", "40P01"],
  ])(
    "are each sent alone if their statement fails (%s), so that one harms no other",
    async (message, code) => {
      const group = openGrouping();
      void group.query("a");
      const others = [group.query("b"), group.query("c")];
      group.sent[0]!.answer(undefined);
      await settle();
      group.sent[1]!.answer(Object.assign(new Error(message), { code }));
      await settle();
      expect(threadsOf(group).slice(2)).toEqual([["b"], ["c"]]);
      for (const { answer } of group.sent.slice(2)) answer(undefined);
      expect(await Promise.all(others)).toEqual(["b of 1", "c of 1"]);
    },
  );

  test("all get the error of a lost connection, because the statement may be committed", async () => {
    const group = openGrouping();
    void group.query("a");
    const others = [group.query("b"), group.query("c")];
    const outcomes = Promise.allSettled(others);
    group.sent[0]!.answer(undefined);
    await settle();
    const lost = new Error("Connection terminated unexpectedly");
    group.sent[1]!.answer(lost);
    expect(await outcomes).toEqual([
      { status: "rejected", reason: lost },
      { status: "rejected", reason: lost },
    ]);
    expect(threadsOf(group)).toHaveLength(2);
  });

  test("do not wait for a statement that waits for a lock", async () => {
    const group = openGrouping();
    void group.query("a");
    const other = group.query("b");
    while (group.sent.length < 2) await settle();
    group.sent[1]!.answer(undefined);
    expect(await other).toBe("b of 1");
  });

  test("name each thread once, and leave out large ones", () => {
    const group = openGrouping();
    for (const thread of ["a", "b", "b", "large"]) void group.query(thread);
    expect(threadsOf(group)).toEqual([["a"], ["b"], ["large"]]);
  });
});
