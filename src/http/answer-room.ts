import type { ServerResponse } from "node:http";
import { callerGone } from "./caller-gone.ts";
import { unavailable } from "../domain/errors.ts";

/**
 * The memory that large answers may take, those that are being made and those that wait to be taken together. Who asks
 * for one waits for room before it is made: what was counted only when it was there let 120 callers make 14 MB each.
 */
export interface AnswerRoom {
  /**
   * Waits for room to make an answer of about so many bytes, in the order in which callers came. The room is held until
   * the response is closed. Asked again for the same response, it answers at once.
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

export interface AnswerRoomOptions {
  bytesAtMost?: number;
  /** How long a refusable answer waits. */
  waitMs?: number;
}

/** 120 callers who each asked for a state of 14 MB and took nothing of it ended a process with a heap of 1 GiB. */
const BYTES_AT_MOST = 128 * 1024 * 1024;
const WAIT_MS = 30_000;
/** What the database sent, its parts, what is remembered of them, and the answer are there at the same time. */
const MAKING_FACTOR = 4;

export const tooManyLargeAnswers = (): Error =>
  unavailable("Too many large answers are being sent at the moment.");

export const createAnswerRoom = ({
  bytesAtMost = BYTES_AT_MOST,
  waitMs = WAIT_MS,
}: AnswerRoomOptions = {}): AnswerRoom => {
  let taken = 0;
  const held = new WeakMap<ServerResponse, number>();
  /** In the order in which they came. */
  const waiting = new Set<{ bytes: number; letIn: () => void }>();

  /** One alone always has room: refused for ever it could never be read. */
  const fits = (bytes: number): boolean => taken === 0 || taken + bytes <= bytesAtMost;

  const letIn = (): void => {
    for (const next of waiting) {
      if (!fits(next.bytes)) return;
      waiting.delete(next);
      next.letIn();
    }
  };

  const hold = (response: ServerResponse, bytes: number): void => {
    // Its `close` has been: what were counted now would be counted for ever.
    if (response.destroyed || response.closed) return;
    const before = held.get(response);
    held.set(response, bytes);
    taken += bytes - (before ?? 0);
    if (before !== undefined) return letIn();
    response.once("close", () => {
      taken -= held.get(response) ?? 0;
      held.delete(response);
      letIn();
    });
  };

  return {
    async reserve(response, bytes, { isRefusable }) {
      if (held.has(response)) return;
      const signal = callerGone(response);
      signal.throwIfAborted();
      const needed = Math.max(bytes, Math.min(bytes * MAKING_FACTOR, bytesAtMost / 2));
      if (waiting.size === 0 && fits(needed)) return hold(response, needed);
      await new Promise<void>((resolve, reject) => {
        const stop = (): void => {
          waiting.delete(place);
          clearTimeout(timer);
          signal.removeEventListener("abort", giveUp);
        };
        const place = {
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
        waiting.add(place);
      });
    },

    send(response, bytes, { isRefusable }) {
      if (!held.has(response) && isRefusable && !fits(bytes)) return false;
      hold(response, bytes);
      return true;
    },
  };
};
