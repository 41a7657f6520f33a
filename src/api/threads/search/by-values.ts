import type { Visibility } from "../../../access/visibility.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { Yielder } from "../../../platform/lib/yielder.ts";
import { matcherOf } from "./containment.ts";
import { createEffort, tooManyThreadsToRead } from "./effort.ts";
import type { OrderedFilter } from "./conditions.ts";
import type { Candidate, PlacedCandidate, ThreadSearcher } from "./search.ts";

/** Who waits for a page. */
export interface PageReadOptions {
  /** Aborts when nobody waits any more; then the search rejects with its reason. */
  signal?: AbortSignal;
  /** Awaited when the page is found to be long, before more of it is read, and before a large state is. */
  whenLong?: (() => Promise<void>) | undefined;
}

/** Threads that are looked into at once where the filter is on values, which no index knows. */
const VALUES_BATCH = 250;
/** Threads that can't be looked into within the time of a search anyway are not begun with. */
const THREADS_READ_AT_MOST = 50_000;

export interface ValueFinderOptions {
  searcher: ThreadSearcher;
  /** Of looking into values. */
  yielder: Yielder;
  /**
   * JSON texts of the newest values, by thread, in the order of the rows, each made when it is asked for; threads that
   * never ran are missing. `keys`: the only keys that are looked at, of many threads. `whenLarge` is awaited before a
   * large state is read.
   */
  valuesOf(
    visibility: Visibility<"threads">,
    rows: readonly Candidate[],
    options: { keys?: ReadonlySet<string>; whenLarge?: (() => Promise<void>) | undefined },
  ): AsyncIterable<readonly [threadId: string, values: string]>;
}

/** Finds threads by their newest values, which no index knows. */
export const createValueFinder = ({ searcher, yielder, valuesOf }: ValueFinderOptions) => {
  /**
   * All threads whose newest values contain `part`, in the order asked for. What is left by the filters
   * that have an index is listed once, then looked into, as long as a search may take: what has begun before the
   * list was made is found once, whatever changes meanwhile.
   */
  const find = async (
    visibility: Visibility<"threads">,
    search: OrderedFilter,
    part: JsonObject,
    { signal, whenLong }: PageReadOptions,
  ): Promise<PlacedCandidate[]> => {
    const effort = createEffort(yielder, signal);
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
