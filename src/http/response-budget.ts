import type { ServerResponse } from "node:http";
import { callerGone } from "./caller-gone.ts";
import { unavailable } from "../platform/domain/errors.ts";
import type { CountedCaller } from "./limits/counted-callers.ts";

/**
 * Bounds the memory of large answers, from before an answer is made until its client has read it. A budget that counted
 * only finished answers let 120 callers make 14 MB each.
 */
export interface ResponseBudget {
  /**
   * `caller` is called only if the response is large. Responses without a caller have no limit of their own, and wait
   * in one queue.
   */
  belongsTo(response: ServerResponse, caller: () => CountedCaller | undefined): void;
  /**
   * Waits for room for an answer of about `bytes`, and holds it until the response closes; callers take turns, each
   * with at most half of the room. Rejects with `CallerGoneError`, or if `isRefusable` with `unavailable` after half a
   * minute.
   */
  reserve(response: ServerResponse, bytes: number, options: { isRefusable: boolean }): Promise<void>;
  /**
   * Replaces the reservation by the size of the finished answer. Returns false and counts nothing if a refusable answer
   * has no reservation and no room.
   */
  send(response: ServerResponse, bytes: number, options: { isRefusable: boolean }): boolean;
}

export interface ResponseBudgetOptions {
  bytesAtMost?: number;
  /** How long a refusable answer waits. */
  waitMs?: number;
}

/** 120 callers that requested a state of 14 MB and read nothing ended a process with a heap of 1 GiB. */
const BYTES_AT_MOST = 128 * 1024 * 1024;
const WAIT_MS = 30_000;
/** The database's answer, its parsed parts, the cached parts and the answer exist at the same time. */
const MAKING_FACTOR = 4;

const LISTENERS_AT_MOST = 20;

/** The name of all callers that are not distinguished. */
const ANONYMOUS = "";

interface Owner {
  name: string;
  /** In bytes. */
  share: number;
}

interface Place {
  owner: Owner;
  bytes: number;
  letIn: () => void;
}

export const tooManyLargeAnswers = (): Error =>
  unavailable("Too many large answers are being sent at the moment.");

export const createResponseBudget = ({
  bytesAtMost = BYTES_AT_MOST,
  waitMs = WAIT_MS,
}: ResponseBudgetOptions = {}): ResponseBudget => {
  let taken = 0;
  const held = new WeakMap<ServerResponse, number>();
  const callers = new WeakMap<ServerResponse, () => CountedCaller | undefined>();
  /** Holds only callers with bytes taken. */
  const takenBy = new Map<string, number>();
  /** By caller in the order of their turns, then in the order of requests. */
  const waiting = new Map<string, Set<Place>>();

  const ownerOf = (response: ServerResponse): Owner => {
    const caller = callers.get(response)?.();
    if (caller === undefined) return { name: ANONYMOUS, share: Infinity };
    return { name: caller.name, share: (bytesAtMost / 2) * caller.times };
  };

  /** A single answer always fits; otherwise an answer larger than the budget could never be read. */
  const fits = (bytes: number): boolean => taken === 0 || taken + bytes <= bytesAtMost;
  const fitsShare = ({ name, share }: Owner, bytes: number): boolean => {
    const own = takenBy.get(name) ?? 0;
    return own === 0 || own + bytes <= share;
  };

  const first = (): Place | undefined => {
    for (const places of waiting.values())
      for (const place of places) {
        if (fitsShare(place.owner, place.bytes)) return place;
        break;
      }
    return undefined;
  };

  const forget = (place: Place): void => {
    const places = waiting.get(place.owner.name);
    places?.delete(place);
    if (places?.size === 0) waiting.delete(place.owner.name);
  };

  const letIn = (): void => {
    for (let next = first(); next !== undefined && fits(next.bytes); next = first()) {
      const { name } = next.owner;
      forget(next);
      const others = waiting.get(name);
      // The caller's next turn comes after those of all others.
      if (others !== undefined && waiting.delete(name)) waiting.set(name, others);
      next.letIn();
    }
  };

  const take = (name: string, bytes: number): void => {
    taken += bytes;
    const own = (takenBy.get(name) ?? 0) + bytes;
    if (own === 0) takenBy.delete(name);
    else takenBy.set(name, own);
  };

  const hold = (response: ServerResponse, bytes: number): void => {
    // The response has already fired `close`, so these bytes would never be released.
    if (response.destroyed || response.closed) return;
    const { name } = ownerOf(response);
    const before = held.get(response);
    held.set(response, bytes);
    take(name, bytes - (before ?? 0));
    if (before !== undefined) return letIn();
    // A large answer has more than ten listeners with those of the stream. Node would report them as a leak.
    response.setMaxListeners(LISTENERS_AT_MOST);
    response.once("close", () => {
      take(name, -(held.get(response) ?? 0));
      held.delete(response);
      letIn();
    });
  };

  return {
    belongsTo(response, caller) {
      callers.set(response, caller);
    },

    async reserve(response, bytes, { isRefusable }) {
      if (held.has(response)) return;
      const signal = callerGone(response);
      signal.throwIfAborted();
      const needed = Math.max(bytes, Math.min(bytes * MAKING_FACTOR, bytesAtMost / 2));
      const owner = ownerOf(response);
      const isNext = !waiting.has(owner.name) && first() === undefined;
      if (isNext && fits(needed) && fitsShare(owner, needed)) return hold(response, needed);
      await new Promise<void>((resolve, reject) => {
        const stop = (): void => {
          forget(place);
          clearTimeout(timer);
          signal.removeEventListener("abort", giveUp);
        };
        const place: Place = {
          owner,
          bytes: needed,
          letIn: () => {
            stop();
            hold(response, needed);
            resolve();
          },
        };
        const giveUp = (): void => {
          stop();
          reject(signal.reason as Error);
          letIn();
        };
        const refuse = (): void => {
          stop();
          reject(tooManyLargeAnswers());
          letIn();
        };
        const timer = isRefusable ? setTimeout(refuse, waitMs) : undefined;
        signal.addEventListener("abort", giveUp);
        const places = waiting.get(owner.name) ?? new Set();
        waiting.set(owner.name, places.add(place));
      });
    },

    send(response, bytes, { isRefusable }) {
      if (!held.has(response) && isRefusable && !(fits(bytes) && fitsShare(ownerOf(response), bytes)))
        return false;
      hold(response, bytes);
      return true;
    },
  };
};
