/** What is left to somebody. */
export interface Balance {
  isRefused: boolean;
  remaining: number;
  /** Seconds until all that is allowed in a minute is there again. */
  resetSeconds: number;
  /** Seconds until one more is allowed; at least 1. */
  retrySeconds: number;
}

interface Bucket {
  /** Below zero: a debt. */
  tokens: number;
  at: number;
}

export interface TokenBuckets {
  /** Takes one token of a bucket that holds `perMinute`, if there is one. */
  take(key: string, perMinute: number): Balance;
  /** What `take` would say, without taking one. Remembers nobody who is not known. */
  peek(key: string, perMinute: number): Balance;
  /** Takes tokens whether they are there or not: what is too much is a debt, and has to come back before the next is given. */
  charge(key: string, perMinute: number, amount: number): void;
}

/** Of each class. Whoever has been away for longest is forgotten, and then has a full bucket. */
const BUCKETS_AT_MOST = 10_000;
/** Whoever asked for very much at once, as for a thousand runs in a batch, waits no longer than this. */
const DEBT_MINUTES = 10;
const MINUTE_MS = 60_000;

/**
 * Counts what each caller takes. A full bucket holds as much as is allowed in a minute, and fills steadily: no window ends
 * at which twice as much would pass, and who is refused waits for one token, not for the end of a minute.
 */
export const createTokenBuckets = ({
  bucketsAtMost = BUCKETS_AT_MOST,
  now = () => performance.now(),
}: { bucketsAtMost?: number; now?: () => number } = {}): TokenBuckets => {
  /** In the order of their last use. */
  const buckets = new Map<string, Bucket>();

  const filled = (key: string, perMinute: number): Bucket => {
    const time = now();
    const bucket = buckets.get(key);
    if (bucket === undefined) {
      if (buckets.size >= bucketsAtMost)
        for (const oldest of buckets.keys()) {
          buckets.delete(oldest);
          break;
        }
      const full = { tokens: perMinute, at: time };
      buckets.set(key, full);
      return full;
    }
    buckets.delete(key);
    buckets.set(key, bucket);
    bucket.tokens = Math.min(perMinute, bucket.tokens + ((time - bucket.at) * perMinute) / MINUTE_MS);
    bucket.at = time;
    return bucket;
  };

  const balanceOf = ({ tokens: left }: Bucket, perMinute: number, isRefused: boolean): Balance => {
    const secondsUntil = (tokens: number): number => Math.ceil(((tokens - left) * 60) / perMinute);
    return {
      isRefused,
      remaining: Math.max(0, Math.floor(left)),
      resetSeconds: secondsUntil(perMinute),
      retrySeconds: Math.max(1, secondsUntil(1)),
    };
  };

  return {
    take(key, perMinute) {
      const bucket = filled(key, perMinute);
      const isRefused = bucket.tokens < 1;
      if (!isRefused) bucket.tokens -= 1;
      return balanceOf(bucket, perMinute, isRefused);
    },

    peek(key, perMinute) {
      const bucket = buckets.has(key) ? filled(key, perMinute) : { tokens: perMinute, at: 0 };
      return balanceOf(bucket, perMinute, bucket.tokens < 1);
    },

    charge(key, perMinute, amount) {
      const bucket = filled(key, perMinute);
      bucket.tokens = Math.max(-DEBT_MINUTES * perMinute, bucket.tokens - amount);
    },
  };
};
