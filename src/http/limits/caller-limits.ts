import type { ThreadloomError } from "../../platform/domain/errors.ts";
import { tooMany } from "../../platform/domain/errors.ts";
import {
  createCounting,
  type CountedCaller,
  type CountedRequest,
  type CountingOptions,
} from "./counted-callers.ts";
import { createOpenStreams } from "./open-streams.ts";
import { createRefusals, type RefusedCounts, type Refusals } from "./refusals.ts";
import { CLASS_NOUNS, RATE_CLASSES, type RateClass } from "./rate-classes.ts";
import { createTokenBuckets, type Balance, type TokenBuckets } from "./token-buckets.ts";

export interface CallerLimitOptions extends CountingOptions {
  /** Per user or address; 0 means no limit. */
  perMinute: Readonly<Record<RateClass, number>>;
  streamsPerCaller: number;
  streamsAtMost: number;
  /** Default: refusals are counted but not logged. */
  refusals?: Refusals;
  /** Maps a caller's name to the name in the database that counts its runs. Default: the same name. */
  countedName?: (name: string) => string;
  now?: () => number;
}

/** A bucket after a request. `limit`: requests per minute. */
export interface Spent extends Balance {
  limit: number;
}

export interface CallerLimits {
  /** Undefined: not limited. */
  counted(request: CountedRequest): CountedCaller | undefined;
  /** Takes one token if there is one. Undefined: not limited. */
  spend(caller: CountedCaller, rate: RateClass): Spent | undefined;
  refusalOf(caller: CountedCaller, spent: Spent, rate: RateClass): ThreadloomError;
  /** Takes a run of a cron; false if the caller has none left. `counted`: the caller's name in the database. */
  takesRun(counted: string | null): boolean;
  /** Takes tokens even if none are left, for a request that was already accepted. */
  charge(caller: CountedCaller, rate: RateClass, amount: number): void;
  /** Counts an open stream until the returned function is called. Throws `tooMany`. */
  openStream(caller: CountedCaller | undefined): () => void;
  noteDroppedConnection(): void;
  /** Also counts refusals by limits of other files. */
  readonly refusals: Refusals;
  figures(): { open_streams: number; refused: Readonly<RefusedCounts> };
}

export const createCallerLimits = (options: CallerLimitOptions): CallerLimits => {
  const { perMinute, streamsPerCaller, streamsAtMost, refusals = createRefusals(), now } = options;
  const bucketOptions = now === undefined ? {} : { now };
  const buckets = Object.fromEntries(
    RATE_CLASSES.map((rate) => [rate, createTokenBuckets(bucketOptions)]),
  ) as Record<RateClass, TokenBuckets>;
  const { countedName = (name) => name } = options;
  /** Requests and crons share the bucket of runs. */
  const keyOf = (name: string, rate: RateClass): string => (rate === "runs" ? countedName(name) : name);
  const streams = createOpenStreams({ perCaller: streamsPerCaller, inAll: streamsAtMost });

  return {
    counted: createCounting(options),

    spend({ name, times }, rate) {
      const limit = perMinute[rate] * times;
      if (limit === 0) return undefined;
      return { ...buckets[rate].take(keyOf(name, rate), limit), limit };
    },

    refusals,

    refusalOf({ name }, { limit, retrySeconds }, rate) {
      refusals.note(rate, name);
      const wait = retrySeconds === 1 ? "a second" : `${retrySeconds} seconds`;
      return tooMany(
        `At most ${limit} ${CLASS_NOUNS[rate]} of one caller are taken in a minute; try again in ${wait}.`,
        retrySeconds,
      );
    },

    charge({ name, times }, rate, amount) {
      const limit = perMinute[rate] * times;
      if (limit > 0 && amount > 0) buckets[rate].charge(keyOf(name, rate), limit, amount);
    },

    takesRun(counted) {
      if (counted === null || perMinute.runs === 0) return true;
      const limit = perMinute.runs * (counted.startsWith("user:") ? 1 : options.keyFactor);
      const { isRefused } = buckets.runs.take(counted, limit);
      if (isRefused) refusals.note("cron_runs", counted);
      return !isRefused;
    },

    openStream(caller) {
      try {
        return streams.open(caller);
      } catch (error) {
        refusals.note("open_streams", caller?.name);
        throw error;
      }
    },

    noteDroppedConnection() {
      refusals.note("connections");
    },

    figures: () => ({ open_streams: streams.active, refused: refusals.figures() }),
  };
};
