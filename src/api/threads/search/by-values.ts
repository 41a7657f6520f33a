import type { Visibility } from "../../../access/visibility.ts";
import type { ReadBudget } from "../../../platform/lib/large-answers.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { TimeSlicer } from "../../../platform/lib/time-slicer.ts";
import { matcherOf } from "./containment.ts";
import { createEffort, tooManyThreadsToRead } from "./effort.ts";
import type { OrderedFilter } from "./conditions.ts";
import type { Candidate, PlacedCandidate, ThreadSearcher } from "./search.ts";

export interface PageReadOptions {
  signal?: AbortSignal;
  /** For large states, and for the rest of a long page. */
  budget?: ReadBudget | undefined;
}

const VALUES_BATCH = 250;
/** More can't be read within the time of a search. */
const THREADS_READ_AT_MOST = 50_000;

export interface ValueFinderOptions {
  searcher: ThreadSearcher;
  slicer: TimeSlicer;
  /** JSON texts of the newest values, in order, without threads that never ran. `keys`: the only keys that matter. */
  valuesOf(
    visibility: Visibility<"threads">,
    rows: readonly Candidate[],
    options: { keys?: ReadonlySet<string>; budget?: ReadBudget | undefined },
  ): AsyncIterable<readonly [threadId: string, values: string]>;
}

export const createValueFinder = ({ searcher, slicer, valuesOf }: ValueFinderOptions) => {
  /** Lists the candidates once, so that a thread which changes meanwhile is found once. */
  const find = async (
    visibility: Visibility<"threads">,
    search: OrderedFilter,
    part: JsonObject,
    { signal, budget }: PageReadOptions,
  ): Promise<PlacedCandidate[]> => {
    const effort = createEffort(slicer, signal);
    const candidates = await searcher.candidates(visibility, search, THREADS_READ_AT_MOST, signal);
    if (candidates === undefined) {
      throw tooManyThreadsToRead(`more than ${THREADS_READ_AT_MOST} threads would have to be looked into`);
    }
    const matches = matcherOf(part, effort.spend);
    const options = {
      keys: new Set(Object.keys(part)),
      budget: budget && { reserve: (bytes: number) => effort.wait(budget.reserve(bytes)) },
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
