import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { ElementCache } from "../../../src/state/checkpoints/lists/element-cache.ts";

const MEGABYTE = 1_000_000;

it("the cache keeps no more threads than its bytes allow, also empty ones", () => {
  const cache = new ElementCache(MEGABYTE);
  for (let index = 0; index < 20_000; index += 1) cache.thread(randomUUID());
  expect(cache.threadCount).toBeLessThanOrEqual(1_000);
  expect(cache.byteCount).toBeLessThanOrEqual(MEGABYTE);
  expect(cache.byteCount).toBeGreaterThan(0);
});

it("the cache counts an element's form for clients, which it also keeps", () => {
  const cache = new ElementCache(MEGABYTE);
  const elements = cache.thread(randomUUID());
  elements.addElements({ list: 1, position: 0, texts: [JSON.stringify("a".repeat(1_000))] });
  const stored = cache.byteCount;
  elements.addWireTexts(1, 0, 1, []);
  expect(cache.byteCount).toBe(stored + 2 * 1_002);
  elements.addWireTexts(1, 0, 1, []);
  expect(cache.byteCount).toBe(stored + 2 * 1_002);
});

it("the cache keeps the most recently used thread, and drops the others", () => {
  const cache = new ElementCache(10_000);
  const [first, second] = [randomUUID(), randomUUID()];
  cache.thread(first).addElements({ list: 1, position: 0, texts: ["1"] });
  cache.thread(second).addElements({ list: 1, position: 0, texts: [`"${"b".repeat(3_500)}"`] });
  cache.thread(first);
  cache.thread(randomUUID()).addElements({ list: 1, position: 0, texts: ["1"] });
  expect(cache.thread(first).has(1, 0, 1)).toBe(true);
  expect(cache.thread(second).has(1, 0, 1)).toBe(false);
});
