import type { Caller } from "../access/caller.ts";
import { unavailable } from "../platform/domain/errors.ts";

/**
 * Of one user. A key, and a caller without a name on a server without authentication, have no share: each may be the only
 * caller.
 */
const SHARE = 0.5;
/** Lists are made without a place: from here on they are refused. */
const REFUSED_FROM = 2;
/** Clients try again after a refusal. */
const WAITING_MS_AT_MOST = 30_000;

export interface Room {
  /**
   * Waits until there is room to make what may be large. Resolves with a function that leaves the place. Rejects with the
   * signal's reason, and with `unavailable` after half a minute.
   */
  enter(caller: Caller | undefined, signal?: AbortSignal): Promise<() => void>;
  make<T>(caller: Caller | undefined, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Makes each item when it is asked for. */
  each<T>(
    caller: Caller | undefined,
    items: AsyncGenerator<T, void>,
    signal?: AbortSignal,
  ): AsyncGenerator<T, void>;
  /** Counts what a client has not read yet, until the returned function is called. */
  unread(caller: Caller | undefined, bytes: number): () => void;
  /** Whether this caller, or all together, have left too much unread even for what was made without waiting. */
  isOverfull(caller: Caller | undefined): boolean;
}

interface Load {
  making: number;
  unread: number;
}

interface RoomOptions {
  places: number;
  /** Default: no limit. */
  unreadBytesAtMost?: number;
  waitingMsAtMost?: number;
}

/** Few are inside at a time, and nobody comes in while too much is unread. */
export const createRoom = ({
  places,
  unreadBytesAtMost = Infinity,
  waitingMsAtMost = WAITING_MS_AT_MOST,
}: RoomOptions): Room => {
  const all: Load = { making: 0, unread: 0 };
  /** Only callers with a load. */
  const byCaller = new Map<string, Load>();
  const waiting = new Set<{ name: string | undefined; letIn: () => void }>();

  const nameOf = (caller: Caller | undefined): string | undefined =>
    caller?.kind === "user" ? caller.identity : undefined;
  const loads = (name: string | undefined): [load: Load, share: number][] => {
    const own = name === undefined ? undefined : byCaller.get(name);
    return own === undefined ? [[all, 1]] : [[all, 1], [own, SHARE]]; // prettier-ignore
  };
  const hasRoom = (name: string | undefined): boolean =>
    loads(name).every(
      ([{ making, unread }, share]) => making < places * share && unread < unreadBytesAtMost * share,
    );

  const add = (name: string | undefined, kind: keyof Load, amount: number): void => {
    all[kind] += amount;
    if (name !== undefined) {
      const own = byCaller.get(name) ?? { making: 0, unread: 0 };
      own[kind] += amount;
      if (own.making === 0 && own.unread === 0) byCaller.delete(name);
      else byCaller.set(name, own);
    }
    if (amount > 0) return;
    for (const waiter of waiting) {
      if (!hasRoom(waiter.name)) continue;
      waiter.letIn();
    }
  };

  const count = (name: string | undefined, kind: keyof Load, amount: number): (() => void) => {
    let left = amount;
    add(name, kind, left);
    return () => {
      add(name, kind, -left);
      left = 0;
    };
  };

  const enter: Room["enter"] = async (caller, signal) => {
    signal?.throwIfAborted();
    const name = nameOf(caller);
    if (hasRoom(name)) return count(name, "making", 1);
    const leave = await new Promise<() => void>((resolve, reject) => {
      const end = (): void => {
        waiting.delete(waiter);
        clearTimeout(timer);
        signal?.removeEventListener("abort", giveUp);
      };
      const giveUp = (): void => {
        end();
        reject(
          signal?.aborted
            ? (signal.reason as Error)
            : unavailable("Too much is being read or written at the moment."),
        );
      };
      const letIn = (): void => {
        end();
        resolve(count(name, "making", 1));
      };
      const waiter = { name, letIn };
      const timer = setTimeout(giveUp, waitingMsAtMost);
      signal?.addEventListener("abort", giveUp);
      waiting.add(waiter);
    });
    if (signal?.aborted !== true) return leave;
    leave();
    throw signal.reason;
  };

  const make: Room["make"] = async (caller, work, signal) => {
    const leave = await enter(caller, signal);
    try {
      return await work();
    } finally {
      leave();
    }
  };

  return {
    enter,
    make,
    async *each(caller, items, signal) {
      try {
        for (;;) {
          const next = await make(caller, () => items.next(), signal);
          if (next.done === true) return;
          yield next.value;
        }
      } finally {
        await items.return();
      }
    },
    unread: (caller, bytes) => count(nameOf(caller), "unread", bytes),
    isOverfull: (caller) =>
      loads(nameOf(caller)).some(([{ unread }, share]) => unread >= unreadBytesAtMost * share * REFUSED_FROM),
  };
};
