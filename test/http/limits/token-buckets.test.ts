import { beforeEach, expect, test } from "vitest";
import { createTokenBuckets, type TokenBuckets } from "../../../src/http/limits/token-buckets.ts";

let seconds = 0;
let buckets: TokenBuckets;
beforeEach(() => {
  seconds = 0;
  buckets = createTokenBuckets({ bucketsAtMost: 3, now: () => seconds * 1_000 });
});

const takeMany = (key: string, perMinute: number, times: number): boolean[] =>
  Array.from({ length: times }, () => !buckets.take(key, perMinute).isRefused);

test("a minute's allowance may be used at once, and no more", () => {
  expect(takeMany("a", 3, 5)).toEqual([true, true, true, false, false]);
});

test("a refused caller waits for one token, and not for the end of a minute", () => {
  takeMany("a", 60, 60);
  expect(buckets.take("a", 60)).toEqual({
    isRefused: true,
    remaining: 0,
    resetSeconds: 60,
    retrySeconds: 1,
  });
  seconds = 1;
  expect(takeMany("a", 60, 2)).toEqual([true, false]);
});

test("no minute boundary lets twice as much pass", () => {
  seconds = 59;
  expect(takeMany("a", 10, 10)).not.toContain(false);
  seconds = 61;
  expect(takeMany("a", 10, 10)).toContain(false);
});

test("a bucket reports its rest, and when it is full again", () => {
  expect(buckets.take("a", 30)).toEqual({
    isRefused: false,
    remaining: 29,
    resetSeconds: 2,
    retrySeconds: 1,
  });
});

test("refused requests cost nothing, so a caller that keeps asking is accepted as soon as one that waits", () => {
  takeMany("a", 6, 1_000);
  seconds = 10;
  expect(takeMany("a", 6, 2)).toEqual([true, false]);
});

test("a charge beyond the rest has to be refilled first, and no caller waits for hours", () => {
  buckets.charge("a", 60, 90);
  expect(buckets.take("a", 60)).toMatchObject({ isRefused: true, retrySeconds: 31 });
  buckets.charge("a", 60, 1_000_000_000);
  expect(buckets.take("a", 60).retrySeconds).toBe(601);
});

test("callers have separate buckets, and the least recently used one is dropped", () => {
  for (const key of ["a", "b", "c"]) takeMany(key, 1, 1);
  expect(takeMany("a", 1, 1)).toEqual([false]);
  takeMany("d", 1, 1);
  expect(takeMany("a", 1, 1)).toEqual([false]);
  expect(takeMany("b", 1, 1)).toEqual([true]);
});
