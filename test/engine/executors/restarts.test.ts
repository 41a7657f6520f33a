import { expect, test } from "vitest";
import type { Member } from "../../../src/engine/executors/process/member.ts";
import { createRestarts } from "../../../src/engine/executors/process/restarts.ts";

/** The maximum of the first pause in a row. */
const FIRST_MS = 50;
const ended = (fields: Partial<Member>): Member =>
  ({ role: "regular", state: "starting", begun: 0, readyAt: 0, ...fields }) as Member;

test("failed starts of suspects' processes do not lengthen the pause of others, and a successful one does not shorten it", () => {
  const restarts = createRestarts();
  for (let times = 0; times < 10; times += 1) restarts.pauseMsAfter(ended({ role: "alone" }));
  expect(restarts.pauseMsAfter(ended({}))).toBeLessThanOrEqual(FIRST_MS);
  for (let times = 0; times < 10; times += 1) restarts.pauseMsAfter(ended({}));
  expect(restarts.pauseMsAfter(ended({ role: "alone", state: "ready", begun: 1 }))).toBe(0);
  expect(restarts.pauseMsAfter(ended({}))).toBeGreaterThan(FIRST_MS);
});

test("a process that a run has ended is started again at once", () => {
  const restarts = createRestarts();
  expect(restarts.pauseMsAfter(ended({ state: "ready", begun: 1, readyAt: performance.now() }))).toBe(0);
});
