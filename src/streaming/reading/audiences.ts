import { setTimeout as delay } from "node:timers/promises";

/** How long a question is held back for those who have not yet taken all that came before it. */
const HELD_BACK_MS = 300;
/** What two sockets are given at the same moment, a client may take in any order. */
const HEAD_START_MS = 25;

/** A connection among those of its thread. */
export interface Seat {
  /** The connection has taken all that the run with this turn has told. */
  reached(turn: number): void;
  /**
   * Resolves when all connections that data come by have taken what the run with this turn has told, or after a while. One is
   * waited for if there is none yet: a client that has just started its run is about to open it.
   */
  whenDataTaken(turn: number, signal: AbortSignal): Promise<void>;
  leave(): void;
}

interface Member {
  isWatcher: boolean;
  turn: number;
}

/**
 * Who reads which thread in this process. Python ends what it iterates over as soon as its connection for lifecycle and input
 * hears of a question, though the data before it come by another connection: 7 of 100 turns lost messages.
 */
export const createAudiences = () => {
  const audiences = new Map<string, { members: Set<Member>; wakers: Set<() => void> }>();

  return {
    join(threadId: string, isWatcher: boolean): Seat {
      const audience = audiences.get(threadId) ?? { members: new Set(), wakers: new Set() };
      audiences.set(threadId, audience);
      const member: Member = { isWatcher, turn: 0 };
      audience.members.add(member);

      const isDataTaken = (turn: number): boolean => {
        const others = [...audience.members].filter((other) => other !== member && !other.isWatcher);
        return (others.length > 0 || !isWatcher) && others.every((other) => other.turn >= turn);
      };
      const wake = (): void => {
        for (const waker of audience.wakers) waker();
      };

      return {
        reached(turn) {
          member.turn = Math.max(member.turn, turn);
          wake();
        },
        async whenDataTaken(turn, signal) {
          if (!isWatcher && isDataTaken(turn)) return;
          await new Promise<void>((resolve) => {
            const look = (): void => {
              if (isDataTaken(turn)) end();
            };
            const end = (): void => {
              clearTimeout(timer);
              audience.wakers.delete(look);
              signal.removeEventListener("abort", end);
              resolve();
            };
            const timer = setTimeout(end, HELD_BACK_MS);
            audience.wakers.add(look);
            signal.addEventListener("abort", end);
            if (signal.aborted) end();
            else look();
          });
          if (isWatcher) await delay(HEAD_START_MS, undefined, { signal }).catch(() => undefined);
        },
        leave() {
          audience.members.delete(member);
          wake();
          if (audience.members.size === 0) audiences.delete(threadId);
        },
      };
    },
  };
};

export type Audiences = ReturnType<typeof createAudiences>;
