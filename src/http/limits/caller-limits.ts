import ipaddr from "ipaddr.js";
import { callerName, type Caller } from "../../access/caller.ts";
import { tooMany, type ThreadloomError } from "../../platform/domain/errors.ts";
import type { RouteOptions } from "fastify";
import { LRUCache } from "lru-cache";
import { boundedText } from "../../platform/lib/log-fields.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { createTokenBuckets, type Balance, type TokenBuckets } from "./token-buckets.ts";

/** A caller with its own limits. `times` multiplies them: an API key stands for an application with many users. */
export interface CountedCaller {
  name: string;
  times: number;
}

/** `ip`: the address of the caller, or of the last proxy that is not trusted. */
export interface CountedRequest {
  caller: Caller;
  ip: string;
}

interface CountingOptions {
  keyFactor: number;
  /** Whether callers without a name are distinguished by address. */
  countsAddresses: boolean;
}

/** Uses no parser, because a server without keys calls this for each request. */
const isLoopback = (ip: string): boolean =>
  ip.startsWith("127.") || ip === "::1" || ip.startsWith("::ffff:127.");

/** An IPv6 address is reduced to its first 64 bits, because one network owns the other half. */
const networkOf = (ip: string): string => {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return address.toString();
  return `${(address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
};

/** Undefined for loopback addresses, which are not counted. */
export const addressNameOf = (ip: string): string | undefined =>
  isLoopback(ip) ? undefined : `address:${networkOf(ip)}`;

/** Undefined means not limited: on loopback, or if the address of a proxy would stand for all callers. */
const createCounting =
  ({ keyFactor, countsAddresses }: CountingOptions) =>
  ({ caller, ip }: CountedRequest): CountedCaller | undefined => {
    const name = callerName(caller);
    if (name !== undefined) return { name, times: caller.kind === "key" ? keyFactor : 1 };
    const address = countsAddresses ? addressNameOf(ip) : undefined;
    return address === undefined ? undefined : { name: address, times: 1 };
  };

/** A guess: most streams end within seconds. */
const RETRY_SECONDS = 5;

const RATE_CLASSES = ["reads", "searches", "writes", "runs", "streams"] as const;
export type RateClass = (typeof RATE_CLASSES)[number];

const CLASS_NOUNS: Readonly<Record<RateClass, string>> = {
  reads: "reading requests",
  searches: "searches",
  writes: "changing requests",
  runs: "new runs",
  streams: "new streams",
};

type Route = Pick<RouteOptions, "method" | "config" | "sse">;

export const isLong = ({ config, sse }: Route): boolean =>
  Boolean(sse) || config?.webSocket === true || config?.waits === true;

/**
 * Null: not counted. Routes set `rate` only if the class does not follow from the method: load balancers call `/ok`,
 * which must never be refused.
 */
export const rateClassOf = (route: Route): RateClass | null => {
  const { method, config } = route;
  if (config?.rate !== undefined) return config.rate;
  if (method === "OPTIONS") return null;
  if (isLong(route)) return "streams";
  if (method === "GET" || method === "HEAD") return "reads";
  return config?.isRead === true ? "searches" : "writes";
};

const LIMITS = [
  ...RATE_CLASSES,
  "open_streams",
  "connections",
  "failed_logins",
  "pending_runs",
  "cron_runs",
] as const;
type Limit = (typeof LIMITS)[number];

/** Refusals since the process started. */
type RefusedCounts = Record<Limit, number>;

export interface Refusals {
  /** `name`: kind and name, as in `CountedCaller` (`user:ann`). Undefined: an unknown caller. */
  note(limit: Limit, name?: string): void;
  figures(): Readonly<RefusedCounts>;
}

interface RefusalOptions {
  logger?: Pick<Logger, "warn"> | undefined;
  /** Formats the name of a user for the log. Default: unchanged. */
  shownUser?: ((name: string) => string) | undefined;
  now?: () => number;
}

/** The database gives digests as caller names of these limits. */
const DIGESTED: ReadonlySet<Limit> = new Set(["pending_runs", "cron_runs"]);
/** Per caller and limit. */
const LOG_EVERY_MS = 60_000;
/** Per minute and for all callers, because a caller with thousands of addresses must not fill the log. */
const LINES_AT_MOST = 60;
const KNOWN_AT_MOST = 1_000;
const NAME_AT_MOST = 200;

export const createRefusals = ({
  logger,
  shownUser = (name) => name,
  now = () => performance.now(),
}: RefusalOptions = {}): Refusals => {
  const counts = Object.fromEntries(LIMITS.map((limit) => [limit, 0])) as RefusedCounts;
  const known = new LRUCache<string, { at: number; suppressed: number }>({ max: KNOWN_AT_MOST });
  let minuteBegan = Number.NEGATIVE_INFINITY;
  let lines = 0;

  const log = (limit: Limit, name: string | undefined): void => {
    const time = now();
    const key = `${limit} ${name ?? ""}`.slice(0, NAME_AT_MOST);
    const before = known.peek(key);
    if (before !== undefined && time - before.at < LOG_EVERY_MS) {
      before.suppressed += 1;
      return;
    }
    if (time - minuteBegan >= LOG_EVERY_MS) [minuteBegan, lines] = [time, 0];
    if (lines >= LINES_AT_MOST) return;
    lines += 1;
    known.set(key, { at: time, suppressed: 0 });
    const kind = name?.split(":", 1)[0];
    const rest = name?.slice(name.indexOf(":") + 1) ?? "";
    const shown = kind === "user" && !DIGESTED.has(limit) ? shownUser(rest) : rest;
    const who = name === undefined ? {} : { caller_kind: kind, caller: boundedText(shown, NAME_AT_MOST) };
    const others = before === undefined || before.suppressed === 0 ? {} : { others_since: before.suppressed };
    logger?.warn({ limit, ...who, ...others }, "a caller is refused at a limit; logged once a minute");
  };

  return {
    note(limit, name) {
      counts[limit] += 1;
      log(limit, name);
    },
    figures: () => ({ ...counts }),
  };
};

export interface CallerLimitOptions extends CountingOptions {
  /** Per user or address; 0 means no limit. */
  perMinute: Readonly<Record<RateClass, number>>;
  /** For a caller with `times` 1; 0 means no limit. */
  streamsPerCaller: number;
  /** For this process. */
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
  /** Counts an open stream until the returned function is first called. Throws `tooMany`. */
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
  /** Streams, WebSockets, their subscriptions, and requests that wait for a run. */
  let streams = 0;
  /** Holds only callers with open streams. */
  const streamsOf = new Map<string, number>();

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
      const name = streamsPerCaller === 0 ? undefined : caller?.name;
      const mine = name === undefined ? 0 : (streamsOf.get(name) ?? 0);
      const atMost = streamsPerCaller * (caller?.times ?? 1);
      const refusal = (text: string): ThreadloomError => {
        refusals.note("open_streams", caller?.name);
        return tooMany(text, RETRY_SECONDS);
      };
      if (streams >= streamsAtMost)
        throw refusal("This server has as many streams and waiting requests open as it can.");
      if (name !== undefined && mine >= atMost)
        throw refusal(
          `At most ${atMost} streams, WebSockets and waiting requests of one caller are open at once; close one first.`,
        );
      streams += 1;
      if (name !== undefined) streamsOf.set(name, mine + 1);
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        streams -= 1;
        if (name === undefined) return;
        const others = (streamsOf.get(name) ?? 1) - 1;
        if (others === 0) streamsOf.delete(name);
        else streamsOf.set(name, others);
      };
    },

    noteDroppedConnection() {
      refusals.note("connections");
    },

    figures: () => ({ open_streams: streams, refused: refusals.figures() }),
  };
};
