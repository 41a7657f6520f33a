import { unavailable } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { Authenticate } from "../api-keys.ts";
import { callerName } from "../caller.ts";
import { loseAll, type Group } from "./groups.ts";
import { createQueue } from "./queue.ts";
import { askAbout } from "./round.ts";

/** A round may come early by this part of the interval, so that rounds spread after a restart or an outage. */
const JITTER = 0.25;
const ROUNDS_AT_ONCE = 8;
/** Failed rounds before connections end: tolerates short outages of the database or the identity provider. */
const FAILURES_AT_MOST = 3;
const RETRY_PART = 0.25;
/** In intervals: how long a due round may stay without a decision. */
const LATE_AT_MOST = 2;
const LOG_EVERY_MS = 10_000;

interface RoundsOptions {
  authenticate: Authenticate;
  everyMs: number;
  logger: Pick<Logger, "warn">;
}

interface Rounds {
  /** Starts the rounds of a group with its first member. The rounds end with its last member. */
  begin(group: Group): void;
  /** Ends groups without a decision for two intervals, and logs late rounds. Must be called regularly. */
  endWhatIsOverdue(groups: Iterable<Group>): void;
  close(): void;
}

export const createRounds = ({ authenticate, everyMs, logger }: RoundsOptions): Rounds => {
  let loggedAt = Number.NEGATIVE_INFINITY;
  let isClosed = false;

  const refuse = (group: Group, error: unknown): void => {
    logger.warn(
      { err: error, connections: group.members.size },
      "a caller could not be reauthorized; its connections are ended",
    );
    loseAll(group, error);
  };

  const ask = async (group: Group): Promise<void> => {
    if (group.members.size === 0) return;
    try {
      await askAbout(group, authenticate);
      group.failures = 0;
      group.dueSince = undefined;
    } catch (error) {
      group.failures += 1;
      if (group.failures >= FAILURES_AT_MOST) refuse(group, error);
    }
    begin(group);
  };

  const queue = createQueue<Group>({
    ownerOf: ({ caller, name }) => callerName(caller) ?? name,
    work: ask,
    atOnce: ROUNDS_AT_ONCE,
  });

  const begin = (group: Group): void => {
    if (group.members.size === 0 || isClosed) return;
    const part = group.failures > 0 ? RETRY_PART : 1 - JITTER * Math.random();
    group.timer = setTimeout(() => {
      group.dueSince ??= performance.now();
      queue.add(group);
    }, everyMs * part).unref();
  };

  return {
    begin,
    endWhatIsOverdue(groups) {
      const now = performance.now();
      let late = 0;
      let ended = 0;
      for (const group of groups) {
        const lateMs = group.dueSince === undefined ? 0 : now - group.dueSince;
        if (lateMs > everyMs) late += 1;
        if (lateMs <= everyMs * LATE_AT_MOST) continue;
        ended += group.members.size;
        loseAll(group, unavailable("Your access could not be checked in time; try again."));
      }
      if (late === 0 || now - loggedAt < LOG_EVERY_MS) return;
      loggedAt = now;
      logger.warn(
        { callers: late, ended_connections: ended },
        "reauthorization takes longer than ACCESS_CHECK_SECONDS; connections that are twice as late are ended",
      );
    },
    close() {
      isClosed = true;
      queue.clear();
    },
  };
};
