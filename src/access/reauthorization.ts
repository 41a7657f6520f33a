import type { Logger } from "../platform/lib/logger.ts";
import type { AccessRequest, Authenticate } from "./api-keys.ts";
import {
  createGroups,
  loseAll,
  type Reauthorize,
  type Group,
  type Member,
} from "./reauthorization/groups.ts";
import { createRounds } from "./reauthorization/rounds.ts";
import type { Caller } from "./caller.ts";

export interface HeldAccess {
  /** Aborts when access is lost, with the error of a refused request as its reason. */
  readonly signal: AbortSignal;
  /** As last authenticated. */
  readonly caller: Caller;
  release(): void;
}

/**
 * Checks open connections (streams, WebSockets, waiting requests) repeatedly, because keys are revoked, tokens expire,
 * and threads change owners.
 */
export interface Reauthorization {
  hold(request: AccessRequest, caller: Caller, ask: Reauthorize): HeldAccess;
  close(): void;
}

interface ReauthorizationOptions {
  authenticate: Authenticate;
  /** Throws if a caller that is no user may not continue. Called each second, so it must read memory only. */
  assertKnown: (caller: Caller) => void;
  /** Maximum interval for users between authentications. */
  everyMs: number;
  logger: Pick<Logger, "warn">;
}

const POLL_EVERY_MS = 1_000;
/** Most connections end earlier, and cost only a timer. */
const SHORT_MS = 500;

export const createReauthorization = (options: ReauthorizationOptions): Reauthorization => {
  const { authenticate, assertKnown, logger } = options;
  const shortMs = Math.min(SHORT_MS, options.everyMs / 4);
  const groups = createGroups();
  const rounds = createRounds({ authenticate, everyMs: options.everyMs - shortMs, logger });
  let checking: NodeJS.Timeout | undefined;

  const check = (): void => {
    for (const group of groups) {
      if (group.caller.kind === "user") continue;
      try {
        assertKnown(group.caller);
      } catch (error) {
        loseAll(group, error);
      }
    }
    rounds.endWhatIsOverdue(groups);
  };

  const join = (group: Group, member: Member): void => {
    group.members.add(member);
    checking ??= setInterval(check, POLL_EVERY_MS).unref();
    if (group.caller.kind === "user" && group.members.size === 1) rounds.begin(group);
  };

  const leave = (group: Group, member: Member): void => {
    if (!group.members.delete(member) || group.members.size > 0) return;
    groups.remove(group);
    if (groups.size > 0) return;
    clearInterval(checking);
    checking = undefined;
  };

  return {
    hold({ method, url, headers }, caller, ask) {
      let group: Group | undefined;
      const loss = new AbortController();
      const member: Member = {
        ask,
        caller,
        lose(error) {
          release();
          loss.abort(error);
        },
      };
      const joining = setTimeout(() => {
        group = groups.of({ method, url, headers }, caller);
        join(group, member);
      }, shortMs).unref();
      const release = (): void => {
        clearTimeout(joining);
        if (group !== undefined) leave(group, member);
      };
      return {
        signal: loss.signal,
        get caller() {
          return member.caller;
        },
        release,
      };
    },
    close() {
      for (const group of groups) groups.remove(group);
      clearInterval(checking);
      rounds.close();
    },
  };
};
