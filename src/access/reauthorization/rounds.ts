import { unavailable } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { Authenticate } from "../api-keys.ts";
import { callerName } from "../caller.ts";
import { loseAll, type Group } from "./groups.ts";
import { createQueue } from "./queue.ts";
import { askAbout } from "./round.ts";

/** Not all at the moment of a restart or an outage: a round comes up to this part of the interval too early. */
const JITTER = 0.25;
/** Rounds of different users at the same time: they share the pool with requests. */
const ROUNDS_AT_ONCE = 8;
/**
 * A database or an identity provider that is away is waited for, also one whose client throws what nobody understands; whoever then is
 * still not known to be allowed is refused.
 */
const FAILURES_AT_MOST = 3;
const RETRY_PART = 0.25;
/** Intervals for which a round may be due and say nothing, since it waits for its turn or for an answer. */
const LATE_AT_MOST = 2;
const LOG_EVERY_MS = 10_000;

export interface RoundsOptions {
  authenticate: Authenticate;
  /** From a round to the next of the same group, at most. */
  everyMs: number;
  logger: Pick<Logger, "warn">;
}

/** Asks about groups of users, again and again. */
export interface Rounds {
  /** Begins with a group that has got its first member, and goes on as long as it has some. */
  begin(group: Group): void;
  /** Ends what is overdue by two intervals, and tells when rounds don't keep up. To be called now and then, with all groups. */
  endWhatIsOverdue(groups: Iterable<Group>): void;
  close(): void;
}

export const createRounds = ({ authenticate, everyMs, logger }: RoundsOptions): Rounds => {
  let loggedAt = Number.NEGATIVE_INFINITY;
  let isClosed = false;

  const refuse = (group: Group, error: unknown): void => {
    logger.warn(
      { err: error, connections: group.members.size },
      "nobody could say whether a caller may go on reading; its connections are ended",
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
        loseAll(group, unavailable("Nobody could say in time whether you may go on reading; try again."));
      }
      if (late === 0 || now - loggedAt < LOG_EVERY_MS) return;
      loggedAt = now;
      logger.warn(
        { callers: late, ended_connections: ended },
        "asking again who may read takes longer than ACCESS_CHECK_SECONDS; what nobody could be asked about for two times that is ended",
      );
    },
    close() {
      isClosed = true;
      queue.clear();
    },
  };
};
