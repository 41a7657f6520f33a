import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { Room } from "../../../http/room.ts";
import { invalid } from "../../../platform/domain/errors.ts";
import { isObject, type JsonObject } from "../../../platform/lib/json.ts";
import { createYieldPoint, type TimeSlicer } from "../../../platform/lib/time-slicer.ts";
import type { Candidate, OrderedFilter, PlacedCandidate, ThreadSearcher } from "./search.ts";

/* No index holds values. So a search by values lists the candidates and reads the newest state of each. */

/** Tests whether a value contains the part, as `jsonb @>` does. */
export type Matcher = (value: unknown) => boolean;

/** Receives the number of the coming comparisons; throws if there are too many. */
export type Spend = (comparisons: number) => void;

/** Prepares the part once for all values. Each nested element of a list needs its own pass, which `spend` bounds. */
export const matcherOf = (part: unknown, spend: Spend): Matcher => {
  if (Array.isArray(part)) return listMatcher(part, spend);
  if (!isObject(part)) return (value) => value === part;
  const fields = Object.entries(part).map(([key, item]) => [key, matcherOf(item, spend)] as const);
  return (value) =>
    isObject(value) && fields.every(([key, matches]) => Object.hasOwn(value, key) && matches(value[key]));
};

const isNested = (item: unknown): boolean => typeof item === "object" && item !== null;

const listMatcher = (part: readonly unknown[], spend: Spend): Matcher => {
  const plain = [...new Set(part)].filter((item) => !isNested(item));
  const nested = part.filter(isNested).map((item) => matcherOf(item, spend));
  return (value) => {
    if (!Array.isArray(value)) return false;
    spend(value.length * (1 + nested.length));
    const held = new Set<unknown>(plain.length === 0 ? [] : value);
    return plain.every((item) => held.has(item)) && nested.every((matches) => value.some(matches));
  };
};

/** Without pauses. A search by values is answered within about a second or refused. */
const VALUES_SEARCH_MS = 900;
/** About 0.2 s. */
const COMPARISONS_AT_MOST = 10_000_000;
const VALUES_BATCH = 250;
/** More can't be read within the time of a search. */
const THREADS_READ_AT_MOST = 50_000;

const tooManyThreadsToRead = (why: string): Error =>
  invalid(`'values': ${why}; narrow the search with 'metadata', 'status' or 'ids'.`);

export interface PageReadOptions {
  signal?: AbortSignal | undefined;
  caller?: Caller | undefined;
}

export interface ValueFinderOptions {
  searcher: Pick<ThreadSearcher, "page" | "count" | "candidates">;
  slicer: TimeSlicer;
  readRoom: Room;
  /** See `StateReader.headValues`. */
  valuesOf(
    visibility: Visibility<"threads">,
    rows: readonly Candidate[],
    keys?: ReadonlySet<string>,
  ): AsyncGenerator<readonly [threadId: string, values: string], void>;
}

/** Finds the threads whose newest values contain `part`, in order. */
export const findByValues = async (
  { searcher, slicer, readRoom, valuesOf }: ValueFinderOptions,
  visibility: Visibility<"threads">,
  search: OrderedFilter,
  part: JsonObject,
  { signal, caller }: PageReadOptions,
): Promise<PlacedCandidate[]> => {
  let end = performance.now() + VALUES_SEARCH_MS;
  /** Does not count the time of the wait. */
  const wait = async <T>(waiting: Promise<T>): Promise<T> => {
    const start = performance.now();
    const waited = await waiting;
    end += performance.now() - start;
    return waited;
  };
  const yieldPoint = createYieldPoint(slicer, signal);
  const goOn = async (): Promise<void> => {
    await wait(yieldPoint());
    if (performance.now() >= end)
      throw tooManyThreadsToRead("looking into all threads that could match takes longer than a second");
  };
  let comparisons = 0;
  const matches = matcherOf(part, (more) => {
    comparisons += more;
    if (comparisons > COMPARISONS_AT_MOST) throw tooManyThreadsToRead("there is too much to compare");
  });
  // Listed once, so that a thread which changes meanwhile is found once.
  const candidates = await searcher.candidates(visibility, search, THREADS_READ_AT_MOST, signal);
  if (candidates === undefined)
    throw tooManyThreadsToRead(`more than ${THREADS_READ_AT_MOST} threads would have to be looked into`);
  const keys = new Set(Object.keys(part));
  const touched = candidates.filter(({ untouched }) => !untouched);
  const found: PlacedCandidate[] = [];
  for (let start = 0; start < touched.length; start += VALUES_BATCH) {
    await goOn();
    const batch = touched.slice(start, start + VALUES_BATCH);
    const matching = new Set<string>();
    const leave = await wait(readRoom.enter(caller, signal));
    try {
      for await (const [id, text] of valuesOf(visibility, batch, keys)) {
        await goOn();
        if (matches(JSON.parse(text))) matching.add(id);
      }
    } finally {
      leave();
    }
    found.push(...batch.filter(({ thread_id }) => matching.has(thread_id)));
  }
  return found;
};
