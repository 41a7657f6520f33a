import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createOwnParts, type OwnParts } from "../../../src/engine/queue/own-parts.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { openQueue, type OpenQueue } from "./open-queue.ts";

/** The parts of a distributed database, divided between servers. The table of servers is in one PostgreSQL. */

const PARTS = 64;
const GRAPHS = ["test"];

let opened: OpenQueue;
beforeAll(async () => {
  opened = await openQueue();
});
afterAll(() => opened.close());
beforeEach(() => opened.database.query("delete from threadloom.workers"));

type Reached = Database & { numbers: () => readonly number[] };
const withParts = (database: Database): Database => ({
  ...database,
  parts: Array.from({ length: PARTS }, () => database),
  withParts: (numbers) => ({ ...database, numbers }) as Reached,
});
const numbersOf = (database: Database): readonly number[] => (database as Reached).numbers();

const seen = (id: string, { graphIds = GRAPHS, secondsAgo = 0 } = {}) =>
  opened.database.query(
    `insert into threadloom.workers (worker_id, graph_ids, seen_at) values ($1, $2, now() - make_interval(secs => $3))
     on conflict (worker_id) do update set seen_at = excluded.seen_at`,
    [id, graphIds, secondsAgo],
  );

const servers = async (count: number): Promise<{ id: string; parts: OwnParts }[]> => {
  const ids = Array.from({ length: count }, newId);
  for (const id of ids) await seen(id);
  return ids.map((id) => ({ id, parts: createOwnParts(withParts(opened.database), id) }));
};

const divided = async (among: { parts: OwnParts }[]): Promise<number[][]> => {
  for (const { parts } of among) await parts.learnServers(GRAPHS);
  return among.map(({ parts }) => [...numbersOf(parts.own)]);
};

const ownersByPart = (own: number[][]): number[] => {
  const counts = Array.from({ length: PARTS }, () => 0);
  for (const numbers of own) for (const number of numbers) counts[number]! += 1;
  return counts;
};

const TWO_EACH = Array.from({ length: PARTS }, () => 2);
const ALL = [...TWO_EACH.keys()];

test("a server owns all parts until it knows the others", () => {
  const parts = createOwnParts(withParts(opened.database), newId());
  expect(numbersOf(parts.own)).toEqual(ALL);
  expect(parts.isOwn(PARTS - 1)).toBe(true);
});

test("one or two servers own all parts", async () => {
  for (const own of await divided(await servers(1))) expect(own).toEqual(ALL);
  await opened.database.query("delete from threadloom.workers");
  for (const own of await divided(await servers(2))) expect(own).toEqual(ALL);
});

test("of more servers, each part has two", async () => {
  for (const count of [3, 4, 9]) {
    await opened.database.query("delete from threadloom.workers");
    const own = await divided(await servers(count));
    expect(ownersByPart(own)).toEqual(TWO_EACH);
  }
});

test("servers share the parts about equally", async () => {
  const own = await divided(await servers(4));
  // Each has 32 on average. The probability of 8 or fewer is about 1 in 10^9.
  for (const numbers of own) expect(numbers.length).toBeGreaterThan(8);
});

test("the parts of a server that goes get other servers, and the other parts keep theirs", async () => {
  const among = await servers(5);
  const before = await divided(among);
  await opened.database.query("delete from threadloom.workers where worker_id = $1", [among[0]!.id]);
  const rest = among.slice(1);
  const after = await divided(rest);
  expect(ownersByPart(after)).toEqual(TWO_EACH);
  for (const [index, own] of after.entries()) expect(own).toEqual(expect.arrayContaining(before[index + 1]!));
});

test("each part has two servers, also while not all of them know of a new one", async () => {
  const among = await servers(3);
  await divided(among);
  const newOne = newId();
  await seen(newOne);
  const another = { parts: createOwnParts(withParts(opened.database), newOne) };
  await divided([another, among[0]!]);
  const own = [...among, another].map(({ parts }) => [...numbersOf(parts.own)]);
  for (const owners of ownersByPart(own)) expect(owners).toBeGreaterThanOrEqual(2);
});

describe("a server does not count", () => {
  test("without a sign of life for eight seconds", async () => {
    const [one] = await servers(1);
    for (let silent = 0; silent < 3; silent += 1) await seen(newId(), { secondsAgo: 8 });
    expect(await divided([one!])).toEqual([ALL]);
  });

  test("if it hosts other graphs", async () => {
    const [one] = await servers(1);
    for (const graphIds of [[], ["other"], ["test", "other"]]) await seen(newId(), { graphIds });
    expect(await divided([one!])).toEqual([ALL]);
  });
});

test("a poll asks the own parts, and each time one other", async () => {
  const [one] = await servers(5);
  const [own] = await divided([one!]);
  const others = new Set<number>();
  for (let poll = 0; poll < 2_000; poll += 1) {
    const numbers = numbersOf(one!.parts.ownAndAnother);
    expect(numbers.slice(0, -1)).toEqual(own);
    others.add(numbers.at(-1)!);
  }
  expect([...own!, ...others].sort((a, b) => a - b)).toEqual(ALL);
});

test("a server that can't reach the table of servers owns all parts", async () => {
  await servers(4);
  let isAway = false;
  const query: Database["query"] = (...asked) =>
    isAway ? Promise.reject(new Error("away")) : opened.database.query(...asked);
  const parts = createOwnParts(withParts({ ...opened.database, query }), newId());
  await parts.learnServers(GRAPHS);
  expect(numbersOf(parts.own).length).toBeLessThan(PARTS);
  isAway = true;
  await expect(parts.learnServers(GRAPHS)).rejects.toThrow("away");
  expect(numbersOf(parts.own)).toEqual(ALL);
  expect(numbersOf(parts.ownAndAnother)).toEqual(ALL);
});

test("a database without parts is asked as a whole, however many servers there are", async () => {
  for (let count = 0; count < 5; count += 1) await seen(newId());
  const database: Database = { ...opened.database, parts: undefined, withParts: undefined };
  const parts = createOwnParts(database, newId());
  await parts.learnServers(GRAPHS);
  expect(parts.own).toBe(database);
  expect(parts.ownAndAnother).toBe(database);
  expect(parts.isOwn(0)).toBe(true);
});
