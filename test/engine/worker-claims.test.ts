import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  aRun,
  aWorker,
  ending,
  FASTER,
  POLL_MS,
  opened,
  REFUSED,
  RESET,
  settled,
} from "./worker-in-memory.ts";

/** Claims of runs for free slots that fail or that lose their answer. */

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a claim", () => {
  test("that another worker was faster at is repeated at once", async () => {
    const one = aWorker();
    one.fail(FASTER);
    one.waiting.push(aRun("a"));
    one.worker.open();
    await settled();
    expect(one.worker.runIds).toEqual(["a"]);
    expect(one.loud()).toEqual([]);
  });

  test("that is refused temporarily is repeated soon, and gives back its slots meanwhile", async () => {
    const one = aWorker();
    one.fail(REFUSED);
    one.waiting.push(aRun("a"));
    one.worker.open();
    await settled();
    expect([one.worker.reserve(), one.worker.reserve()]).not.toContain(undefined);
    one.worker.cancelReservation();
    one.worker.cancelReservation();
    await vi.advanceTimersByTimeAsync(60);
    expect(one.worker.runIds).toEqual(["a"]);
    expect(one.loud()).toEqual([]);
    // The claim cannot have been committed.
    await one.looks(2);
    expect(one.did.join()).not.toContain("looked for unknown");
  });

  test("is repeated as quickly after one outage as after another", async () => {
    const one = aWorker();
    one.fail(...Array<Error>(6).fill(REFUSED));
    one.worker.open();
    await vi.advanceTimersByTimeAsync(POLL_MS * 5);
    one.fail(REFUSED);
    one.worker.wake();
    await settled();
    one.waiting.push(aRun("a"));
    await vi.advanceTimersByTimeAsync(51);
    expect(one.worker.runIds).toEqual(["a"]);
  });

  test("also takes runs that wait for a slot given back meanwhile", async () => {
    const one = aWorker(3);
    one.worker.reserve();
    const release = one.holdClaims();
    one.waiting.push(aRun("a"), aRun("b"), aRun("c"));
    one.worker.wake();
    one.worker.cancelReservation();
    release();
    await settled();
    expect(one.worker.runIds).toEqual(["a", "b", "c"]);
  });

  test("that fails for another reason is logged, and repeated at the next poll", async () => {
    const one = aWorker();
    one.fail(new Error("out of order"));
    one.waiting.push(aRun("a"));
    one.worker.open();
    await vi.advanceTimersByTimeAsync(POLL_MS - 1);
    expect(one.worker.active).toBe(0);
    expect(one.loud()).toEqual(["runs could not be claimed"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(one.worker.runIds).toEqual(["a"]);
  });
});

describe("runs that need a process of their own", () => {
  const lost = (...runs: string[]) => runs.map((runId) => aRun(runId, { lost_attempts: 2 }));
  const withSeven = async (failure?: Error) => {
    const one = aWorker(10);
    one.waiting.push(...lost("a", "b", "c", "d", "e", "f", "g"), aRun("other"));
    if (failure !== undefined) one.handingBack.failure = failure;
    one.worker.open();
    await settled();
    return one;
  };

  test("are begun up to four at a time; a claim hands others back, and later ones leave them", async () => {
    const one = await withSeven();
    const [, , , , e, f, g] = lost("a", "b", "c", "d", "e", "f", "g");
    expect(one.worker.runIds).toEqual(["a", "b", "c", "d", "other"]);
    expect(one.did.slice(-3)).toEqual(["handed e back", "handed f back", "handed g back"]);
    one.waiting.push(...[e!, f!, g!].map((run) => ({ ...run, attempt: 2 })), aRun("next"));
    await one.looks(2);
    expect(one.worker.runIds).toEqual(["a", "b", "c", "d", "other", "next"]);
    one.asked.length = one.did.length = 0;
    one.runOf("b").release(ending());
    await settled();
    expect(one.worker.runIds).toEqual(["a", "c", "d", "other", "next", "e"]);
    expect([one.asked, one.did.join()]).toEqual([[1, 4], expect.not.stringContaining("handed")]);
  });

  test("stay here if they are to be cancelled, because nobody cancels them in the queue", async () => {
    const one = aWorker(10);
    one.handingBack.action = "interrupt";
    one.waiting.push(...lost("a", "b", "c", "d", "e"));
    one.worker.open();
    await settled();
    expect(one.worker.runIds).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("are handed back as soon as the database answers again", async () => {
    const one = await withSeven(REFUSED);
    one.holdUnknown(lost("e", "f", "g"));
    await one.looks(5);
    expect(one.did.join()).not.toContain("handed");
    delete one.handingBack.failure;
    await one.looks(1);
    expect(one.did).toEqual(expect.arrayContaining(["handed e back", "handed f back", "handed g back"]));
    expect(one.worker.runIds).toEqual(["a", "b", "c", "d", "other"]);
  });
});

describe("the poll", () => {
  test("makes no other statement while nothing waits", async () => {
    const one = await opened();
    one.pollFinds({});
    one.asked.length = 0;
    await one.looks(3);
    expect(one.asked).toEqual([]);
    expect(one.did).toEqual([]);
  });

  test("finds a run that no signal announced", async () => {
    const one = await opened();
    one.pollFinds({ runs: true });
    one.waiting.push(aRun("a"));
    await one.looks();
    expect(one.worker.runIds).toEqual(["a"]);
  });

  test("wakes the outbox if webhooks are due, also at a process that executes no runs", async () => {
    for (const one of [aWorker(2), aWorker(0)]) {
      one.worker.open();
      one.pollFinds({ deliveries: true });
      await one.looks();
      expect(one.did).toEqual(["woke the outbox"]);
    }
  });

  test("leaves the fault to a claim if the database does not answer", async () => {
    const one = await opened();
    one.pollFinds(REFUSED);
    one.waiting.push(aRun("a"));
    await one.looks();
    expect(one.worker.runIds).toEqual(["a"]);
    expect(one.loud()).toEqual([]);
  });
});

describe("after the answer to a claim was lost:", () => {
  const withLostAnswer = async () => {
    const one = aWorker();
    one.fail(RESET);
    one.worker.open();
    await settled();
    return one;
  };
  const found = (did: string[]): number => did.filter((what) => what.startsWith("looked")).length;

  test("a run that this process owns without knowing it is executed once", async () => {
    const one = await withLostAnswer();
    one.holdUnknown([aRun("a")]);
    await one.looks(2);
    expect(one.did.filter((what) => what === "began a")).toHaveLength(1);
    expect(one.worker.runIds).toEqual(["a"]);
    // The answer arrives after all, or the run has ended and the list is older.
    one.runOf("a").release(ending());
    await one.looks(1);
    one.worker.reserve();
    expect(one.worker.start(aRun("a"))).toBeUndefined();
    one.waiting.push(aRun("a"));
    one.worker.wake();
    await settled();
    expect(one.did.filter((what) => what === "began a")).toHaveLength(1);
    // A later attempt counts as another one.
    one.waiting.push(aRun("a", { attempt: 2 }));
    one.worker.wake();
    await settled();
    expect(one.did.filter((what) => what === "began a")).toHaveLength(2);
  });

  test("a run that is already executed is left alone, and one without a slot is handed back", async () => {
    const one = await withLostAnswer();
    one.worker.reserve();
    one.worker.start(aRun("a"));
    one.worker.reserve();
    one.holdUnknown([aRun("a"), aRun("b")]);
    await one.looks(1);
    expect(one.did).toContain("looked for unknown ones beside a");
    expect(one.did.filter((what) => what === "began a")).toHaveLength(1);
    expect(one.did).toContain("handed b back");
    expect(one.worker.runIds).toEqual(["a"]);
    const told = "the response to the claim of a run was lost; the run goes back to the queue";
    expect(one.loud(40)).toContain(told);
  });

  test.each<[string, (one: ReturnType<typeof aWorker>) => void]>([
    [
      "claimed",
      (one) => {
        one.waiting.push(aRun("a"));
        one.worker.wake();
      },
    ],
    ["created", ({ worker }) => void (worker.reserve(), worker.start(aRun("a")))],
    ["found by its creator", ({ worker }) => void worker.adopt(aRun("a"))],
  ])(
    "a run that was %s and executed here before, and whose outcome could not be stored, is left to another attempt",
    async (_how, begin) => {
      const one = await withLostAnswer();
      begin(one);
      await settled();
      one.runOf("a").release(undefined);
      one.holdUnknown([aRun("a")]);
      await one.looks(1);
      expect(one.did).toContain("gave the lease of a up in attempt 1");
      expect(one.worker.adopt(aRun("a"))).toBeUndefined();
      one.worker.reserve();
      expect(one.worker.start(aRun("a"))).toBeUndefined();
      expect(one.did.filter((what) => what === "began a")).toHaveLength(1);
      one.waiting.push(aRun("a", { attempt: 2 }));
      one.worker.wake();
      await settled();
      expect(one.did.filter((what) => what === "began a")).toHaveLength(2);
    },
  );

  test("the search lasts three seconds, and starts again after another lost answer", async () => {
    const one = await withLostAnswer();
    await one.looks(10);
    expect(found(one.did)).toBe(4);
    one.fail(RESET);
    one.worker.wake();
    await one.looks(10);
    expect(found(one.did)).toBe(8);
  });

  test("the search continues while the database does not answer", async () => {
    const one = await withLostAnswer();
    one.holdUnknown(REFUSED);
    await one.looks(10);
    one.holdUnknown([aRun("a")]);
    await one.looks(1);
    expect(one.worker.runIds).toEqual(["a"]);
    expect(one.loud()).toEqual([]);
  });

  test("the search continues while a run without a slot can't be handed back", async () => {
    const one = await withLostAnswer();
    one.worker.reserve();
    one.worker.reserve();
    one.handingBack.failure = REFUSED;
    one.holdUnknown([aRun("a")]);
    await one.looks(10);
    delete one.handingBack.failure;
    await one.looks(1);
    expect(one.did).toContain("handed a back");
  });
});
