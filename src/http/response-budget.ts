import type { ServerResponse } from "node:http";
import { callerGone } from "./caller-gone.ts";
import { unavailable } from "../platform/domain/errors.ts";
import type { CountedCaller } from "./limits/counted-callers.ts";

/**
 * The memory that large answers may take, those that are being made and those that wait to be taken together. Who asks
 * for one waits for room before it is made: what was counted only when it was there let 120 callers make 14 MB each.
 */
export interface ResponseBudget {
  /** Says whose a response is, which is asked once it is large. Others are not told apart: they have no share, and one turn together. */
  belongsTo(response: ServerResponse, caller: () => CountedCaller | undefined): void;
  /**
   * Waits for room to make an answer of about so many bytes: of a caller in the order in which he asked, and callers in
   * turns, none of whom has more than half of the room. The room is held until the response is closed. Asked again for the same response, it answers at once.
   *
   * `isRefusable`: rejects with `unavailable` after half a minute, which clients repeat. What has changed something must
   * not be repeated: it waits as long as its caller does. Rejects with a `CallerGoneError` when that one leaves.
   */
  reserve(response: ServerResponse, bytes: number, options: { isRefusable: boolean }): Promise<void>;
  /**
   * Counts an answer that has been made instead of what was reserved for it. False if nothing was reserved and there is
   * no room, and then nothing is counted, unless it is not `isRefusable`.
   */
  send(response: ServerResponse, bytes: number, options: { isRefusable: boolean }): boolean;
}

export interface ResponseBudgetOptions {
  bytesAtMost?: number;
  /** How long a refusable answer waits. */
  waitMs?: number;
}

/** 120 callers who each asked for a state of 14 MB and took nothing of it ended a process with a heap of 1 GiB. */
const BYTES_AT_MOST = 128 * 1024 * 1024;
const WAIT_MS = 30_000;
/** What the database sent, its parts, what is remembered of them, and the answer are there at the same time. */
const MAKING_FACTOR = 4;

/** The name of all who are not told apart. */
const ANONYMOUS = "";

interface Owner {
  name: string;
  /** Bytes that he may have of the room. */
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
  /** Bytes of those who have some. */
  const takenBy = new Map<string, number>();
  /** By the name of the caller, in the order of their turns; each in the order in which he asked. */
  const waiting = new Map<string, Set<Place>>();

  const ownerOf = (response: ServerResponse): Owner => {
    const caller = callers.get(response)?.();
    if (caller === undefined) return { name: ANONYMOUS, share: Infinity };
    return { name: caller.name, share: (bytesAtMost / 2) * caller.times };
  };

  /** One alone always has room: refused for ever it could never be read. */
  const fits = (bytes: number): boolean => taken === 0 || taken + bytes <= bytesAtMost;
  const fitsShare = ({ name, share }: Owner, bytes: number): boolean => {
    const own = takenBy.get(name) ?? 0;
    return own === 0 || own + bytes <= share;
  };

  /** Whose turn it is, of those who have not spent their share. */
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
      // All others have their turn before this caller has the next one.
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
    // Its `close` has been: what were counted now would be counted for ever.
    if (response.destroyed || response.closed) return;
    const { name } = ownerOf(response);
    const before = held.get(response);
    held.set(response, bytes);
    take(name, bytes - (before ?? 0));
    if (before !== undefined) return letIn();
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
