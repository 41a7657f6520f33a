import { setImmediate as endOfTurn } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { afterEach, expect, it, vi } from "vitest";
import { CallerGoneError } from "../../../src/platform/domain/errors.ts";
import { createThreadPages } from "../../../src/api/threads/search/pages.ts";
import { createReadRoom } from "../../../src/http/large-answers.ts";
import type { Room } from "../../../src/http/room.ts";
import { createReadSlicer } from "../../../src/api/threads/state/state.ts";
import type { PlacedCandidate, ThreadSearcher } from "../../../src/api/threads/search/search.ts";
import { threadCountBody, threadSearchBody } from "../../../src/api/threads/schemas.ts";
import { ANONYMOUS } from "../../../src/access/caller.ts";
import { authorize } from "../../helpers/access.ts";

afterEach(() => void vi.restoreAllMocks());

const candidatesOf = (length: number): PlacedCandidate[] =>
  Array.from({ length }, () => ({
    ...{ thread_id: randomUUID(), graph_id: "agent", untouched: false },
    place: "1700000000000000",
  }));

/** Pages over listed threads; counts the calls of `valuesOf`. */
const pagesOver = (
  length: number,
  text: string,
  onBatch: (batch: number) => void = () => undefined,
  readRoom: Room = createReadRoom(),
) => {
  const all = candidatesOf(length);
  let batches = 0;
  const searcher = {
    candidates: (_visibility: unknown, _filter: unknown, limit: number) =>
      Promise.resolve(all.length > limit ? undefined : all),
    page: () => Promise.resolve({ rows: [], total: 0, isLast: true }),
  } as Partial<ThreadSearcher> as ThreadSearcher;
  const pages = createThreadPages({
    authorize,
    searcher,
    slicer: createReadSlicer(),
    readRoom,
    async *valuesOf(_visibility, rows) {
      batches += 1;
      onBatch(batches);
      for (const row of rows) yield await Promise.resolve([row.thread_id, text] as const);
    },
  });
  return { pages, batches: () => batches };
};
const byValues = (values: unknown) => threadSearchBody.parse({ values });
const kinds = (error: unknown) => error as { kind?: string; message: string };

it("returns all matching threads of a search by values in time, with the true total", async () => {
  const { pages } = pagesOver(1_234, '{"count":1}');
  expect((await pages.page(ANONYMOUS, byValues({ count: 1 }))).total).toBe(1_234);
  expect(await pages.count(ANONYMOUS, threadCountBody.parse({ values: { count: 1 } }))).toBe(1_234);
  expect(await pages.count(ANONYMOUS, threadCountBody.parse({ values: { count: 2 } }))).toBe(0);
});

it("refuses a search by values at once if more threads remain than it can check", async () => {
  const { pages, batches } = pagesOver(50_001, '{"count":1}');
  const refused = kinds(await pages.page(ANONYMOUS, byValues({ count: 1 })).catch((error: unknown) => error));
  expect(refused.kind).toBe("invalid");
  expect(refused.message).toMatch(/'values': more than 50000 threads .* narrow the search with 'metadata'/);
  expect(batches()).toBe(0);
});

it("refuses a search by values when its time is over", async () => {
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  const { pages, batches } = pagesOver(10_000, '{"count":1}', () => (now += 400));
  const refused = kinds(
    await pages
      .count(ANONYMOUS, threadCountBody.parse({ values: { count: 1 } }))
      .catch((error: unknown) => error),
  );
  expect(refused.kind).toBe("invalid");
  expect(refused.message).toContain("takes longer than a second; narrow the search");
  expect(batches()).toBe(3);
});

it("also refuses one that would compare lists of lists and objects without end", async () => {
  const long = JSON.stringify({ list: Array.from({ length: 60_000 }, (_, id) => ({ id })) });
  const { pages } = pagesOver(2, long);
  const list = Array.from({ length: 400 }, (_, id) => ({ id: -id - 1 }));
  const refused = kinds(
    await pages
      .count(ANONYMOUS, threadCountBody.parse({ values: { list } }))
      .catch((error: unknown) => error),
  );
  expect(refused.message).toContain("too much to compare");
});

it("does not count the time in which a search by values waits for room", async () => {
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  const room = createReadRoom();
  const slowRoom: Room = {
    ...room,
    async enter(caller) {
      await endOfTurn();
      now += 10_000;
      return await room.enter(caller);
    },
  };
  const { pages, batches } = pagesOver(1_000, '{"count":1}', undefined, slowRoom);
  expect(await pages.count(ANONYMOUS, threadCountBody.parse({ values: { count: 1 } }))).toBe(1_000);
  expect(batches()).toBe(4);
});

it("stops reading threads when the caller has disconnected", async () => {
  const caller = new AbortController();
  const { pages, batches } = pagesOver(10_000, '{"count":1}', (batch) => {
    if (batch === 2) caller.abort(new CallerGoneError());
  });
  const end = await pages
    .page(ANONYMOUS, byValues({ count: 1 }), caller.signal)
    .catch((error: unknown) => error);
  expect(end).toBeInstanceOf(CallerGoneError);
  expect(batches()).toBe(2);
});
