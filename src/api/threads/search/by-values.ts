import type { Visibility } from "../../../access/visibility.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { TimeSlicer } from "../../../platform/lib/time-slicer.ts";
import { matcherOf } from "./containment.ts";
import { createEffort, tooManyThreadsToRead } from "./effort.ts";
import type { OrderedFilter } from "./conditions.ts";
import type { Candidate, PlacedCandidate, ThreadSearcher } from "./search.ts";

export interface PageReadOptions {
  /** Aborts when the caller has gone; the search then rejects with its reason. */
  signal?: AbortSignal;
  /** Awaited before the rest of a long page is read, and before a large state is read. */
  whenLong?: (() => Promise<void>) | undefined;
}

/** Threads read per batch. No index holds values. */
const VALUES_BATCH = 250;
/** More threads can't be read within the time of a search, so such a search is refused at once. */
const THREADS_READ_AT_MOST = 50_000;

export interface ValueFinderOptions {
  searcher: ThreadSearcher;
  slicer: TimeSlicer;
  /**
   * JSON texts of the newest values, in the order of the rows, each made on demand. Threads that never ran are missing.
   * `keys`: the only keys that matter. `whenLarge` is awaited before a large state is read.
   */
  valuesOf(
    visibility: Visibility<"threads">,
    rows: readonly Candidate[],
    options: { keys?: ReadonlySet<string>; whenLarge?: (() => Promise<void>) | undefined },
  ): AsyncIterable<readonly [threadId: string, values: string]>;
}

export const createValueFinder = ({ searcher, slicer, valuesOf }: ValueFinderOptions) => {
  /**
   * All threads whose newest values contain `part`, in order. Indexed filters list the candidates once, so a thread
   * that changes meanwhile is still found once.
   */
  const find = async (
    visibility: Visibility<"threads">,
    search: OrderedFilter,
    part: JsonObject,
    { signal, whenLong }: PageReadOptions,
  ): Promise<PlacedCandidate[]> => {
    const effort = createEffort(slicer, signal);
    const candidates = await searcher.candidates(visibility, search, THREADS_READ_AT_MOST, signal);
    if (candidates === undefined) {
      throw tooManyThreadsToRead(`more than ${THREADS_READ_AT_MOST} threads would have to be looked into`);
    }
    const matches = matcherOf(part, effort.spend);
    const options = {
      keys: new Set(Object.keys(part)),
      whenLarge: whenLong && (() => effort.wait(whenLong())),
    };
    const touched = candidates.filter(({ untouched }) => !untouched);
    const found: PlacedCandidate[] = [];
    for (let start = 0; start < touched.length; start += VALUES_BATCH) {
      await effort.goOn();
      const batch = touched.slice(start, start + VALUES_BATCH);
      const matching = new Set<string>();
      for await (const [id, text] of valuesOf(visibility, batch, options)) {
        await effort.goOn();
        if (matches(JSON.parse(text))) matching.add(id);
      }
      found.push(...batch.filter(({ thread_id }) => matching.has(thread_id)));
    }
    return found;
  };

  return { find };
};
