import { LRUCache } from "lru-cache";

export interface Balance {
  isRefused: boolean;
  remaining: number;
  /** Seconds until the bucket is full. */
  resetSeconds: number;
  /** Seconds until the next token; at least 1. */
  retrySeconds: number;
}

interface Bucket {
  /** Negative: a debt. */
  tokens: number;
  at: number;
}

export interface TokenBuckets {
  /** Takes one token if there is one. The bucket holds `perMinute` tokens. */
  take(key: string, perMinute: number): Balance;
  /** Like `take`, but takes no token and creates no bucket. */
  peek(key: string, perMinute: number): Balance;
  /** Takes tokens even if none are left. The next `take` succeeds only after the debt has refilled. */
  charge(key: string, perMinute: number, amount: number): void;
}

/** Per class. A caller whose bucket was dropped, the least recently used, starts with a full one. */
const BUCKETS_AT_MOST = 10_000;
/** Bounds the debt of one large request, such as a batch of a thousand runs. */
const DEBT_MINUTES = 10;
const MINUTE_MS = 60_000;

/** A bucket refills steadily. Unlike a fixed window, it never allows twice the limit at a window's end. */
export const createTokenBuckets = ({
  bucketsAtMost = BUCKETS_AT_MOST,
  now = () => performance.now(),
}: { bucketsAtMost?: number; now?: () => number } = {}): TokenBuckets => {
  const buckets = new LRUCache<string, Bucket>({ max: bucketsAtMost });

  const filled = (key: string, perMinute: number): Bucket => {
    const time = now();
    const bucket = buckets.get(key);
    if (bucket === undefined) {
      const full = { tokens: perMinute, at: time };
      buckets.set(key, full);
      return full;
    }
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
