/** After a run begins, its client opens the connection for data within this time. */
const OPENED_WITHIN_MS = 2_000;
/** An interrupt is held back this long for connections that have not yet received the events before it. */
const TAKEN_WITHIN_MS = 2_000;
/** A client may read two sockets in any order. The head start is the time that it took to open the other connection. */
const HEAD_START_MS = { least: 25, most: 1_000 };
/** The interval for checking whether a socket has sent its data. */
const FLUSH_POLL_MS = 5;
/** A run that ended earlier was not started by a client that connects now. */
export const JUST_NOW_MS = 2_000;

/** A connection as the others of its thread see it. */
export interface Attendance {
  /** Other connections carry the data. */
  isWatcher: boolean;
  /** The operating system has taken all written data. */
  hasFlushed(): boolean;
  /** When the client opened the connection, by `performance.now()`; it may have joined later. */
  openedAt: number;
}

/** A connection among those of its thread. */
export interface Place {
  /** The connection reads the first event of this turn's run. */
  began(turn: number): void;
  /** The connection has received all events of this turn's run. */
  reached(turn: number): void;
  /** The connection is about to receive the end of this turn's run. */
  endSent(turn: number): void;
  /**
   * Whether no connection has received this run's end yet, so that its own client may come for it. Another open
   * connection is no sign, since it may belong to an earlier session.
   */
  awaitsEnd(turn: number): boolean;
  /**
   * For a watcher: resolves when the thread's other connections have had time to take the run's data. See
   * docs/decisions/040-when-a-question-is-told.md.
   */
  whenDataTaken(turn: number, signal: AbortSignal): Promise<void>;
  leave(): void;
}

interface Member extends Attendance {
  turn: number;
  /** The time between a run's beginning and this connection, if the run was its reason. */
  openingMs: number;
}

interface ThreadConnections {
  members: Set<Member>;
  wakers: Set<() => void>;
  /** When the first member read of the newest run. */
  begun: { turn: number; at: number };
}

/** Resolves when `subscribe` calls back, after `waitMs`, or when `signal` aborts. */
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

/** The turns of recently sent ends, by thread. */
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
 * The connections of each thread in this process. Python stops reading when its lifecycle connection receives an
 * interrupt, though data before it come by another connection: 7 of 100 turns lost messages.
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

      /** The longest time that a client took to open its connection for data after a run's beginning. */
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
