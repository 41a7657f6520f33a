import type { Event } from "@langchain/protocol";

/**
 * Ids of events within a thread that one attempt at a run has (src/engine/events/event-ids.ts): each attempt has a turn of its own. Part of the
 * wire.
 */
const IDS_PER_TURN = 2 ** 27;

/** Longer than any conversation that a stream tells; what was said before is storedIds by then, or gone. */
const MESSAGES_AT_MOST = 10_000;

/** Which attempts have said what, as far as a stream has newestWithState. */
export interface Turns {
  add(event: Event): void;
  /** Of the attempt that was heard last; 0: none was. */
  readonly newest: number;
  /** Whether it has newestWithState nothing of the state: it began over the other wire, while nobody listened. */
  readonly lacksState: boolean;
  /** Another number as soon as something else is left over. */
  readonly version: number;
  /**
   * Whether an earlier attempt than the one that was heard last has said this message, and the state does not have it: its server or its
   * process has died, or lost the database. Of a graph that keeps no messages nothing is left over: nobody can say which ones it has.
   */
  isDiscarded(messageId: string): boolean;
  /** Tells of changes of `version`. */
  subscribe(onChange: () => void): () => void;
}

const idsOf = (values: unknown): ReadonlySet<unknown> | undefined => {
  const messages = (values as { messages?: unknown } | null | undefined)?.messages;
  if (!Array.isArray(messages)) return undefined;
  return new Set((messages as ({ id?: unknown } | null)[]).map((message) => message?.id));
};

export const createTurns = (): Turns => {
  let newest = 0;
  /** The last one that has newestWithState the state. */
  let newestWithState = 0;
  let version = 0;
  /** As the values newestWithState that were heard last. */
  let storedIds: ReadonlySet<unknown> | undefined;
  const turnsOfMessages = new Map<string, number>();
  const listeners = new Set<() => void>();
  const rememberTurn = (id: string, turn: number): void => {
    const [oldest] = turnsOfMessages.keys();
    if (turnsOfMessages.size >= MESSAGES_AT_MOST && oldest !== undefined) turnsOfMessages.delete(oldest);
    turnsOfMessages.set(id, turn);
  };
  return {
    add({ seq, method, params }) {
      if (typeof seq !== "number") return;
      const turn = Math.floor(seq / IDS_PER_TURN);
      const isOfState = method === "values" && params.namespace.length === 0;
      if (isOfState) {
        storedIds = idsOf(params.data);
        newestWithState = Math.max(newestWithState, turn);
      }
      if (method === "messages") {
        const { event, id } = params.data as { event?: unknown; id?: unknown };
        if (event === "message-start" && typeof id === "string") rememberTurn(id, turn);
      }
      if (turn <= newest && !isOfState) return;
      newest = Math.max(newest, turn);
      version += 1;
      for (const notify of listeners) notify();
    },
    get newest() {
      return newest;
    },
    get lacksState() {
      return newestWithState < newest;
    },
    get version() {
      return version;
    },
    isDiscarded: (id) =>
      (turnsOfMessages.get(id) ?? newest) < newest && storedIds !== undefined && !storedIds.has(id),
    subscribe(onChange) {
      listeners.add(onChange);
      return () => listeners.delete(onChange);
    },
  };
};
