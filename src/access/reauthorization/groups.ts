import { createHash } from "node:crypto";
import type { AccessRequest } from "../api-keys.ts";
import { callerName, type Caller } from "../caller.ts";

/** Asks once in a round for all connections of a caller that want to know the same. */
export type Once = <Answer>(subject: string, ask: () => Promise<Answer>) => Promise<Answer>;

/** What a connection asks of the caller as it is now. Rejects as a request would be refused, if it may not go on. */
export type Reauthorize = (caller: Caller, once: Once) => Promise<unknown>;

/** A connection that is open. */
export interface Member {
  ask: Reauthorize;
  caller: Caller;
  lose(error: unknown): void;
}

/** Connections of one caller that have shown the same: one call of `authenticate` says of all whether they may go on. */
export interface Group {
  name: string;
  /** That of its first connection: the others have shown the same. */
  request: AccessRequest;
  caller: Caller;
  members: Set<Member>;
  /** Rounds in a row that said nothing. */
  failures: number;
  /** Since when a round that says something is due, by `performance.now()`; undefined: none is. */
  dueSince: number | undefined;
  timer: NodeJS.Timeout | undefined;
}

export const loseAll = (group: Group, error: unknown): void => {
  for (const member of [...group.members]) member.lose(error);
};

/** Differ between the requests of one caller, and say nothing of who it is. */
const OF_EACH_REQUEST = new Set([
  "accept",
  "connection",
  "content-length",
  "content-type",
  "last-event-id",
  "sec-websocket-key",
  "traceparent",
  "tracestate",
  "x-request-id",
]);

/**
 * The same for connections of the same caller who have shown the same. A digest: what was shown is a secret. Any header may be
 * what a project's `authenticate` reads, so a client that varies one has many groups; they wait for each other (queue.ts).
 */
const nameOf = ({ url, headers }: AccessRequest, caller: Caller): string => {
  if (caller.kind !== "user") return callerName(caller) ?? caller.kind;
  const shown = Object.entries(headers).filter(([header]) => !OF_EACH_REQUEST.has(header));
  const query = url.slice(url.split("?")[0]?.length);
  return createHash("sha256")
    .update(JSON.stringify([caller.user, query, shown]))
    .digest("base64");
};

/** All groups that have members. */
export interface Groups extends Iterable<Group> {
  readonly size: number;
  /** The one for such a request of this caller: made if it is not there. */
  of(request: AccessRequest, caller: Caller): Group;
  remove(group: Group): void;
}

export const createGroups = (): Groups => {
  const groups = new Map<string, Group>();
  return {
    get size() {
      return groups.size;
    },
    // A copy: whoever walks through them may end some.
    [Symbol.iterator]: () => [...groups.values()][Symbol.iterator](),
    of(request, caller) {
      const name = nameOf(request, caller);
      const found = groups.get(name);
      if (found !== undefined) return found;
      const group: Group = {
        name,
        request,
        caller,
        members: new Set(),
        failures: 0,
        dueSince: undefined,
        timer: undefined,
      };
      groups.set(name, group);
      return group;
    },
    remove(group) {
      clearTimeout(group.timer);
      groups.delete(group.name);
    },
  };
};
