import { describe, expect, it } from "vitest";
import { matcherOf } from "../../../src/api/threads/search/by-values.ts";

const contains = (value: unknown, part: unknown): boolean => matcherOf(part, () => undefined)(value);

describe("containment of values, as in jsonb,", () => {
  it.each([
    [{ a: 1, b: 2 }, { a: 1 }, true],
    [{ a: 1 }, { a: 2 }, false],
    [{ a: { b: [1, { c: 2, d: 3 }] } }, { a: { b: [{ c: 2 }] } }, true],
    [[1, 2, 3], [3, 1, 1], true],
    [[1, 2], [1, 2, 3], false],
    [[[1, 2], [3]], [[3], [2]], true],
    [[1], 1, false],
    [{ a: [1] }, { a: { "0": 1 } }, false],
    [[], [], true],
    [{}, [], false],
    [null, {}, false],
    [{ a: null }, { a: null }, true],
    [{}, { a: null }, false],
    [{ a: "1" }, { a: 1 }, false],
    [{}, { constructor: {} }, false],
  ])("%j contains %j: %s", (value, part, expected) => {
    expect(contains(value, part)).toBe(expected);
  });

  it("is checked in one pass over a list, however many plain values are searched in it", () => {
    const length = 60_000;
    const numbers = Array.from({ length }, (_, index) => index);
    let comparisons = 0;
    const matches = matcherOf({ tags: [...numbers].reverse() }, (more) => (comparisons += more));
    expect(matches({ tags: numbers })).toBe(true);
    expect(comparisons).toBe(length);
  });

  it("measures the cost of lists and objects in a list before it compares them", () => {
    const matches = matcherOf([{ a: 1 }, { a: 2 }, [3]], (more) => {
      if (more > 1_000) throw new Error(`${more} comparisons`);
    });
    expect(() => matches(Array.from({ length: 500 }, () => ({ a: 0 })))).toThrow("2000 comparisons");
  });
});
