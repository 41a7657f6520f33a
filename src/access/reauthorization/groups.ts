import { createHash } from "node:crypto";
import type { AccessRequest } from "../api-keys.ts";
import { callerName, type Caller } from "../caller.ts";

/** Connections of a caller with the same subject share one answer per round. */
export type Once = <Answer>(subject: string, ask: () => Promise<Answer>) => Promise<Answer>;

export const createOnce = (): Once => {
  const answers = new Map<string, Promise<unknown>>();
  return (subject, ask) => {
    const answer = answers.get(subject) ?? ask();
    answers.set(subject, answer);
    return answer as ReturnType<typeof ask>;
  };
};

/** Checks a connection with the caller's current state. Rejects if a request would be refused. */
export type Reauthorize = (caller: Caller, once: Once) => Promise<unknown>;

export interface Member {
  ask: Reauthorize;
  caller: Caller;
  lose(error: unknown): void;
}

/** Connections of one caller with the same credentials. They share one call of `authenticate`. */
export interface Group {
  name: string;
  /** The request of the first connection, for the credentials. */
  request: AccessRequest;
  caller: Caller;
  members: Set<Member>;
  /** Consecutive rounds without a decision. */
  failures: number;
  /** When the pending round became due, by `performance.now()`. */
  dueSince: number | undefined;
  timer: NodeJS.Timeout | undefined;
}

export const loseAll = (group: Group, error: unknown): void => {
  for (const member of [...group.members]) member.lose(error);
};

/** Headers that vary between requests and do not identify the caller. */
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
 * A digest, because credentials are secrets. A client that varies headers has many groups, which take turns (queue.ts).
 */
const nameOf = ({ url, headers }: AccessRequest, caller: Caller): string => {
  if (caller.kind !== "user") return callerName(caller) ?? caller.kind;
  const shown = Object.entries(headers).filter(([header]) => !OF_EACH_REQUEST.has(header));
  const query = url.slice(url.split("?")[0]?.length);
  return createHash("sha256")
    .update(JSON.stringify([caller.user, query, shown]))
    .digest("base64");
};

interface Groups extends Iterable<Group> {
  readonly size: number;
  /** Creates the group if it does not exist. */
  of(request: AccessRequest, caller: Caller): Group;
  remove(group: Group): void;
}

export const createGroups = (): Groups => {
  const groups = new Map<string, Group>();
  return {
    get size() {
      return groups.size;
    },
    // A copy, because loops may remove groups.
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
