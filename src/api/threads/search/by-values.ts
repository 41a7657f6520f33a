import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { Room } from "../../../http/room.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { TimeSlicer } from "../../../platform/lib/time-slicer.ts";
import { matcherOf } from "./containment.ts";
import { createEffort, tooManyThreadsToRead } from "./effort.ts";
import type { OrderedFilter } from "./conditions.ts";
import type { Candidate, PlacedCandidate, ThreadSearcher } from "./search.ts";

export interface PageReadOptions {
  signal?: AbortSignal | undefined;
  caller?: Caller | undefined;
}

const VALUES_BATCH = 250;
/** More can't be read within the time of a search. */
const THREADS_READ_AT_MOST = 50_000;

export interface ValueFinderOptions {
  searcher: ThreadSearcher;
  slicer: TimeSlicer;
  readRoom: Room;
  /** JSON texts of the newest values, in order, without threads that never ran. `keys`: the only keys that matter. */
  valuesOf(
    visibility: Visibility<"threads">,
    rows: readonly Candidate[],
    options: { keys?: ReadonlySet<string> },
  ): AsyncGenerator<readonly [threadId: string, values: string], void>;
}

export const createValueFinder = ({ searcher, slicer, readRoom, valuesOf }: ValueFinderOptions) => {
  /** Lists the candidates once, so that a thread which changes meanwhile is found once. */
  const find = async (
    visibility: Visibility<"threads">,
    search: OrderedFilter,
    part: JsonObject,
    { signal, caller }: PageReadOptions,
  ): Promise<PlacedCandidate[]> => {
    const effort = createEffort(slicer, signal);
    const candidates = await searcher.candidates(visibility, search, THREADS_READ_AT_MOST, signal);
    if (candidates === undefined) {
      throw tooManyThreadsToRead(`more than ${THREADS_READ_AT_MOST} threads would have to be looked into`);
    }
    const matches = matcherOf(part, effort.spend);
    const keys = new Set(Object.keys(part));
    const touched = candidates.filter(({ untouched }) => !untouched);
    const found: PlacedCandidate[] = [];
    for (let start = 0; start < touched.length; start += VALUES_BATCH) {
      await effort.goOn();
      const batch = touched.slice(start, start + VALUES_BATCH);
      const matching = new Set<string>();
      const leave = await effort.wait(readRoom.enter(caller, signal));
      try {
        for await (const [id, text] of valuesOf(visibility, batch, { keys })) {
          await effort.goOn();
          if (matches(JSON.parse(text))) matching.add(id);
        }
      } finally {
        leave();
      }
      found.push(...batch.filter(({ thread_id }) => matching.has(thread_id)));
    }
    return found;
  };

  return { find };
};
