import { expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createWaitingParts } from "../../../src/engine/queue/waiting-parts.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import type { ClaimedRunRow } from "../../../src/platform/database/tables.ts";

/** Parts that claims ask. The first character of a thread's id is its part. */

const PARTS = 4;

const threadOf = (part: number): string => `${part}${newId().slice(1)}`;

/** Parts with runs, as a distributed database has them. */
const partsWithRuns = (...runs: number[]) => {
  const parts = runs.map((count) => ({ count }));
  const database = { parts, partOf: (threadId: string) => Number(threadId[0]) } as unknown as Database;
  const waiting = createWaitingParts(database);
  let asked: number[] = [];
  const failing = new Map<number, Error>();
  let meanwhile = (_part: number): void => undefined;
  const claim = async (limit: number) => {
    asked = [];
    const claimed = await waiting.claim(limit, async (asking, left) => {
      const part = asking as unknown as { count: number };
      const number = parts.indexOf(part);
      asked.push(number);
      await Promise.resolve();
      const failure = failing.get(number);
      if (failure !== undefined) throw failure;
      const taken = Math.min(left, part.count);
      part.count -= taken;
      meanwhile(number);
      return Array.from({ length: taken }, () => ({ run_id: newId() }) as ClaimedRunRow);
    });
    return { claimed: claimed.length, asked };
  };
  return {
    waiting,
    claim,
    asked: () => asked,
    fails: (part: number, failure: Error | undefined) =>
      failure === undefined ? failing.delete(part) : failing.set(part, failure),
    during: (work: (part: number) => void) => (meanwhile = work),
    arrive(part: number, count = 1) {
      parts[part]!.count += count;
      waiting.note(threadOf(part));
    },
  };
};

const empty = () => partsWithRuns(...Array.from({ length: PARTS }, () => 0));

test("the first claim asks each part, and the next one none", async () => {
  const { claim } = empty();
  expect(await claim(10)).toEqual({ claimed: 0, asked: [0, 1, 2, 3] });
  expect(await claim(10)).toEqual({ claimed: 0, asked: [] });
});

test("a claim asks the part of a thread whose run was announced", async () => {
  const { claim, arrive } = empty();
  await claim(10);
  arrive(2);
  expect(await claim(10)).toEqual({ claimed: 1, asked: [2] });
  expect(await claim(10)).toEqual({ claimed: 0, asked: [] });
});

test("a run of any thread makes a claim ask each part", async () => {
  const { claim, waiting } = empty();
  await claim(10);
  waiting.note();
  expect(await claim(10)).toMatchObject({ asked: [0, 1, 2, 3] });
});

test("a claim begins the runs of a part before it asks another, and says that parts are left", async () => {
  const { claim, waiting } = partsWithRuns(0, 1, 1, 0);
  expect(await claim(5)).toEqual({ claimed: 1, asked: [0, 1] });
  expect(waiting.areLeft).toBe(true);
  expect(await claim(4)).toEqual({ claimed: 1, asked: [2] });
  expect(await claim(3)).toEqual({ claimed: 0, asked: [3] });
  expect(waiting.areLeft).toBe(false);
});

test("a part that gave as many runs as were asked for is asked again, after the others", async () => {
  const { claim } = partsWithRuns(4, 4, 0, 0);
  expect(await claim(2)).toEqual({ claimed: 2, asked: [0] });
  expect(await claim(2)).toEqual({ claimed: 2, asked: [1] });
  expect(await claim(2)).toEqual({ claimed: 2, asked: [2, 3, 0] });
  expect(await claim(9)).toEqual({ claimed: 2, asked: [1] });
  expect(await claim(9)).toEqual({ claimed: 0, asked: [0] });
  expect(await claim(9)).toEqual({ claimed: 0, asked: [] });
});

test("a run that is announced while its part is asked is not forgotten", async () => {
  const { claim, arrive, during } = empty();
  await claim(10);
  arrive(1);
  during(() => {
    during(() => undefined);
    arrive(1);
  });
  expect(await claim(10)).toEqual({ claimed: 1, asked: [1] });
  expect(await claim(10)).toEqual({ claimed: 1, asked: [1] });
  expect(await claim(10)).toEqual({ claimed: 0, asked: [] });
});

test("a late answer does not forget a run that was announced after another claim", async () => {
  const parts = [{}];
  const database = { parts, partOf: () => 0 } as unknown as Database;
  const waiting = createWaitingParts(database);
  let answer = (): void => undefined;
  const late = waiting.claim(1, () => new Promise((resolve) => (answer = () => resolve([]))));
  await waiting.claim(1, () => Promise.resolve([]));
  expect(waiting.areLeft).toBe(false);
  waiting.note(threadOf(0));
  answer();
  await late;
  expect(waiting.areLeft).toBe(true);
});

test("a part that fails keeps no runs of other parts back, and is asked again, after the others", async () => {
  const { claim, fails } = partsWithRuns(1, 1, 1, 0);
  fails(0, new Error("away"));
  expect(await claim(10)).toEqual({ claimed: 1, asked: [0, 1] });
  fails(0, undefined);
  expect(await claim(10)).toEqual({ claimed: 1, asked: [2] });
  expect(await claim(10)).toEqual({ claimed: 1, asked: [3, 0] });
});

test("a claim that got nothing throws what a part threw", async () => {
  const { claim, fails, asked } = empty();
  fails(3, new Error("away"));
  await expect(claim(10)).rejects.toThrow("away");
  expect(asked()).toEqual([0, 1, 2, 3]);
});

test("a database without parts is always asked", async () => {
  const database = {} as Database;
  const waiting = createWaitingParts(database);
  const asked: [Database, number][] = [];
  for (let turn = 0; turn < 2; turn += 1)
    await waiting.claim(3, (part, limit) => {
      asked.push([part, limit]);
      return Promise.resolve([]);
    });
  expect(asked).toEqual([
    [database, 3],
    [database, 3],
  ]);
});
