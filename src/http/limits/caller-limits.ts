import type { ThreadloomError } from "../../platform/domain/errors.ts";
import { tooMany } from "../../platform/domain/errors.ts";
import { createCounting, type CountedCaller, type CountedRequest } from "./counted-callers.ts";
import { createOpenStreams } from "./open-streams.ts";
import { createRefusals, type RefusedCounts, type Refusals } from "./refusals.ts";
import { CLASS_NOUNS, RATE_CLASSES, type RateClass } from "./rate-classes.ts";
import { createTokenBuckets, type Balance, type TokenBuckets } from "./token-buckets.ts";

export interface CallerLimitOptions {
  /** Of a user or an address; 0: no limit. */
  perMinute: Readonly<Record<RateClass, number>>;
  keyFactor: number;
  countsAddresses: boolean;
  streamsPerCaller: number;
  streamsAtMost: number;
  /** Left out: they are counted, and nobody is told. */
  refusals?: Refusals;
  /** The name by which the runs of a caller are counted in the database; left out: the same name. */
  countedName?: (name: string) => string;
  now?: () => number;
}

/** What of it was spent, and what is left. `limit`: requests a minute. */
export interface Spent extends Balance {
  limit: number;
}

/** What one caller may ask of this process. */
export interface CallerLimits {
  /** Undefined: not limited. */
  counted(request: CountedRequest): CountedCaller | undefined;
  /** Takes one of a class, if there is one; undefined: not limited. */
  spend(caller: CountedCaller, rate: RateClass): Spent | undefined;
  /** The refusal of what the caller has spent; it is counted. */
  refusalOf(caller: CountedCaller, spent: Spent, rate: RateClass): ThreadloomError;
  /**
   * Takes a run that no request asks for, as that of a cron, of a caller as the database names it. False if the caller has no
   * run left.
   */
  takesRun(counted: string | null): boolean;
  /** Takes more, whether it is there or not: what was asked for with a request that has been let in. */
  charge(caller: CountedCaller, rate: RateClass, amount: number): void;
  /** Something that stays open; throws `tooMany`. Answers what ends it. */
  openStream(caller: CountedCaller | undefined): () => void;
  /** A connection was closed at once, since there are too many. */
  noteDroppedConnection(): void;
  /** Also for limits that are looked after elsewhere. */
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
  /** Runs of requests and of crons share a bucket. */
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
