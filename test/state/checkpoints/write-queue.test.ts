import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ElementCache } from "../../../src/state/checkpoints/lists/element-cache.ts";
import { ThreadLists } from "../../../src/state/checkpoints/lists/thread-lists.ts";
import { KnownShapes } from "../../../src/state/checkpoints/rows/known-shapes.ts";
import { FIELD } from "../../../src/state/checkpoints/rows/separators.ts";
import { WriteQueue } from "../../../src/state/checkpoints/write/write-queue.ts";
import { Encryption } from "../../../src/platform/encryption/encryption.ts";
import type { Database } from "../../../src/platform/database/database.ts";

/** An answer of the database other than success. */
type Answer = Error | undefined;
const SECOND_MS = 1_000;
/** Far more tries than a queue makes that gives up at all. */
const TRIES_AT_MOST = 1_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const failing = (code: string) => Object.assign(new Error(`refused with ${code}`), { code });
/** Another writer has taken the place. */
const TAKEN = failing("23505");

/** A queue on a database that takes one second for each answer. */
const aQueue = (answer: (tries: number) => Answer) => {
  const threadId = randomUUID();
  const made = { tries: 0, lists: [] as unknown[] };
  const database = {
    encryption: new Encryption(undefined),
    async query(_text: string, values: unknown[]) {
      made.tries += 1;
      made.lists.push((values[1] as string).split(FIELD)[1]);
      // The queue retries endlessly. Without an answer the test ends, while an error would cause another retry.
      if (made.tries > TRIES_AT_MOST) await new Promise(() => undefined);
      vi.advanceTimersByTime(SECOND_MS);
      const failure = answer(made.tries);
      if (failure !== undefined) throw failure;
      return [{ thread_id: threadId, version: null }];
    },
  } as Partial<Database> as Database;
  const elements = new ElementCache(1_000_000);
  const threadLists = new ThreadLists();
  const queue = new WriteQueue({
    database,
    threadId,
    fence: undefined,
    asynchronous: false,
    threadLists,
    elements: () => elements.thread(threadId),
    shapes: new KnownShapes(),
  });
  const add = () => {
    threadLists.plan(["a"], undefined);
    return queue.add({ elements: threadLists.takeNewElements(), contents: [], shapes: [] });
  };
  return { made, queue, add };
};

describe("a place in a list that another writer has taken", () => {
  test("stays with that writer: the data goes to a list of its own", async () => {
    const { made, add } = aQueue((tries) => (tries === 1 ? TAKEN : undefined));
    await add();
    expect(made.tries).toBe(2);
    expect(made.lists[1]).not.toBe(made.lists[0]);
  });

  test("is retried for at most 15 s", async () => {
    const { made, queue, add } = aQueue(() => TAKEN);
    await expect(add()).rejects.toBe(TAKEN);
    expect(made.tries).toBe(16);
    expect(queue.failed.reason).toBe(TAKEN);
  });
});

test("a write that the database refuses for another reason is not retried, and nothing is stored after it", async () => {
  const refused = failing("23502");
  const { made, add } = aQueue(() => refused);
  await expect(add()).rejects.toBe(refused);
  expect(() => add()).toThrow(refused);
  expect(made.tries).toBe(1);
});
