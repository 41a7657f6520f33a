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

/** What a connection that is open is held by. */
export interface HeldAccess {
  /** Aborts when access is lost; its reason is what a request would be refused with. */
  readonly signal: AbortSignal;
  /** As it was authenticated last. */
  readonly caller: Caller;
  release(): void;
}

/**
 * Asks again about what stays open (streams, WebSockets, requests that wait), for keys are revoked, tokens expire, and threads
 * change hands while somebody reads.
 */
export interface Reauthorization {
  hold(request: AccessRequest, caller: Caller, ask: Reauthorize): HeldAccess;
  close(): void;
}

export interface ReauthorizationOptions {
  authenticate: Authenticate;
  /** Whether a caller without a user of its own may go on: throws if not. It is asked each second, so from memory. */
  assertKnown: (caller: Caller) => void;
  /** Of users: after that at the latest they are authenticated again, and their connections ask. */
  everyMs: number;
  logger: Pick<Logger, "warn">;
}

const POLL_EVERY_MS = 1_000;
/** What ends before costs a timer and no more: most runs that are streamed or waited for do. */
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
