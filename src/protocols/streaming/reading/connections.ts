/** How long after a run has begun its client is about to open the connection that the run's data come by. */
const OPENED_WITHIN_MS = 2_000;
/** How long a question is held back for connections that have not yet taken all that came before it. */
const TAKEN_WITHIN_MS = 2_000;
/** What two sockets are given at the same moment, a client may take in any order. It is given as long as it took to open the other. */
const HEAD_START_MS = { least: 25, most: 1_000 };
/** How often a socket is looked at that has not passed on all that it was given. */
const FLUSH_POLL_MS = 5;
/** A run that ended longer ago was not started by who opens a connection now. */
export const JUST_NOW_MS = 2_000;

/** A connection, as those of its thread see it. */
export interface Attendance {
  /** Data come by others. */
  isWatcher: boolean;
  /** The operating system has taken all that was written so far. */
  hasFlushed(): boolean;
  /** When its client opened it, by `performance.now()`: it may have had to wait before it took part. */
  openedAt: number;
}

/** A connection among those of its thread. */
export interface Place {
  /** The connection hears of the run with this turn for the first time. */
  began(turn: number): void;
  /** The connection has been given all that the run with this turn has told of itself. */
  reached(turn: number): void;
  /** The connection is about to be told how the run with this turn ended. */
  endSent(turn: number): void;
  /**
   * Of a run that ended just now, whether its end was told to nobody yet: then its own client comes for it. Not whether another
   * connection is open: that of a session before may be, whose client has closed it already.
   */
  awaitsEnd(turn: number): boolean;
  /**
   * For a watcher: resolves when the clients of the thread have had the time to take what the run with this turn has told, by their
   * other connections. See docs/decisions/040-when-a-question-is-told.md.
   */
  whenDataTaken(turn: number, signal: AbortSignal): Promise<void>;
  leave(): void;
}

interface Member extends Attendance {
  turn: number;
  /** How long after the beginning of a run it was opened, if that was its reason. */
  openingMs: number;
}

interface ThreadConnections {
  members: Set<Member>;
  wakers: Set<() => void>;
  /** When the first of the members heard of the newest run. */
  begun: { turn: number; at: number };
}

/** Resolves when `subscribe` calls back, after a while, or when nobody waits any more. */
const change = async (
  subscribe: (wake: () => void) => () => void,
  waitMs: number,
  signal: AbortSignal,
): Promise<void> =>
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      unsubscribe();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, waitMs);
    const unsubscribe = subscribe(end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });

const NEVER = (): (() => void) => () => undefined;

/** Ends that were told just now, by thread: the turn of each. */
const createSentEnds = () => {
  const sent = new Map<string, { turn: number; until: number }>();
  return {
    note(threadId: string, turn: number): void {
      const now = performance.now();
      sent.delete(threadId);
      sent.set(threadId, { turn, until: now + JUST_NOW_MS });
      for (const [oldest, { until }] of sent) {
        if (until > now) break;
        sent.delete(oldest);
      }
    },
    has(threadId: string, turn: number): boolean {
      const last = sent.get(threadId);
      return last !== undefined && last.turn >= turn && last.until > performance.now();
    },
  };
};

/**
 * Who reads which thread in this process. Python ends what it iterates over as soon as its connection for lifecycle and input
 * hears of a question, though the data before it come by another connection: 7 of 100 turns lost messages.
 */
export const createAudiences = () => {
  const audiences = new Map<string, ThreadConnections>();
  const sentEnds = createSentEnds();

  return {
    join(threadId: string, attendance: Attendance): Place {
      const now = performance.now();
      const audience: ThreadConnections = audiences.get(threadId) ?? {
        members: new Set(),
        wakers: new Set(),
        begun: { turn: 0, at: now },
      };
      audiences.set(threadId, audience);
      const openingMs = attendance.openedAt - audience.begun.at;
      const member: Member = {
        ...attendance,
        turn: 0,
        openingMs: openingMs > 0 && openingMs < OPENED_WITHIN_MS ? openingMs : 0,
      };
      audience.members.add(member);

      const others = (): Member[] =>
        [...audience.members].filter((other) => other !== member && !other.isWatcher);
      const subscribe = (wake: () => void): (() => void) => {
        audience.wakers.add(wake);
        return () => audience.wakers.delete(wake);
      };
      const wake = (): void => {
        for (const waker of audience.wakers) waker();
      };
      wake();

      /** As long as a client took to open its connection for data once its run had begun: that is its pace at the moment. */
      const headStart = (): number =>
        Math.min(
          Math.max(HEAD_START_MS.least, ...others().map((other) => other.openingMs)),
          HEAD_START_MS.most,
        );

      return {
        began(turn) {
          if (turn > audience.begun.turn) audience.begun = { turn, at: performance.now() };
        },
        reached(turn) {
          member.turn = Math.max(member.turn, turn);
          wake();
        },
        endSent(turn) {
          if (!member.isWatcher) sentEnds.note(threadId, turn);
        },
        awaitsEnd: (turn) => !sentEnds.has(threadId, turn),
        async whenDataTaken(turn, signal) {
          if (!member.isWatcher) return;
          const takenBy = performance.now() + TAKEN_WITHIN_MS;
          for (;;) {
            const reading = others();
            const until = reading.length > 0 ? takenBy : audience.begun.at + OPENED_WITHIN_MS;
            const left = until - performance.now();
            if (left <= 0 || signal.aborted) return;
            const isGiven = reading.length > 0 && reading.every((other) => other.turn >= turn);
            if (isGiven && reading.every((other) => other.hasFlushed())) break;
            await change(subscribe, isGiven ? FLUSH_POLL_MS : left, signal);
          }
          await change(NEVER, headStart(), signal);
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

export type Connections = ReturnType<typeof createAudiences>;
