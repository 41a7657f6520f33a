import { LRUCache } from "lru-cache";
import { boundedText } from "../../platform/lib/log-fields.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { RATE_CLASSES } from "./rate-classes.ts";

const LIMITS = [
  ...RATE_CLASSES,
  "open_streams",
  "connections",
  "failed_logins",
  "pending_runs",
  "cron_runs",
] as const;
export type Limit = (typeof LIMITS)[number];

/** Refusals since the process started. */
export type RefusedCounts = Record<Limit, number>;

export interface Refusals {
  /** `name`: kind and name, as in `CountedCaller` (`user:ann`). Undefined: an unknown caller. */
  note(limit: Limit, name?: string): void;
  figures(): Readonly<RefusedCounts>;
}

export interface RefusalOptions {
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
