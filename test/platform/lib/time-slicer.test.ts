import { setImmediate as turn, setTimeout as pause } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createTimeSlicer, createYieldPoint } from "../../../src/platform/lib/time-slicer.ts";

/** Work of unknown duration: it blocks the event loop. */
const hold = (milliseconds: number): void => {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
};

describe("sliced work", () => {
  test("continues at once while its slice is young", async () => {
    const yieldPoint = createYieldPoint(createTimeSlicer(60_000));
    let turned = false;
    setImmediate(() => (turned = true));
    for (let round = 0; round < 100; round += 1) await yieldPoint();
    expect(turned).toBe(false);
  });

  test("pauses when its slice is over", async () => {
    const yieldPoint = createYieldPoint(createTimeSlicer(5));
    let turns = 0;
    let over = false;
    const others = (async () => {
      for (; !over; turns += 1) await turn();
    })();
    for (let round = 0; round < 10; round += 1) {
      await yieldPoint();
      hold(6);
    }
    over = true;
    await others;
    expect(turns).toBeGreaterThanOrEqual(9);
  });

  test("of many callers is done one slice at a time, with pauses in which other work has many turns", async () => {
    const slicer = createTimeSlicer(5, () => 5);
    let inOneTurn = 0;
    let most = 0;
    let turns = 0;
    let over = false;
    const others = (async () => {
      for (; !over; turns += 1) {
        inOneTurn = 0;
        await turn();
      }
    })();
    const callers = Array.from({ length: 8 }, async () => {
      const yieldPoint = createYieldPoint(slicer);
      // All first rounds begin before their length is known.
      await yieldPoint();
      for (let round = 0; round < 5; round += 1) {
        hold(6);
        await yieldPoint();
        inOneTurn += 1;
        most = Math.max(most, inOneTurn);
      }
    });
    await Promise.all(callers);
    over = true;
    await others;
    expect(most).toBe(1);
    // With one turn between two slices there would be one for each; a pause has hundreds.
    expect(turns).toBeGreaterThan(200);
  });

  test("ends with the signal's reason while it waits, and does not delay the others", async () => {
    const slicer = createTimeSlicer(1);
    const gone = new AbortController();
    const leaving = createYieldPoint(slicer, gone.signal);
    const staying = createYieldPoint(slicer);
    await leaving();
    hold(2);
    const left = expect(leaving()).rejects.toThrow("gone");
    const stayed = staying();
    gone.abort(new Error("gone"));
    await left;
    await stayed;
    await pause(0);
    await staying();
  });
});
