import type { Event } from "@langchain/protocol";

/**
 * Ids of events within a thread that one attempt at a run has (src/engine/events/event-ids.ts): each attempt has a turn of its own. Part of the
 * wire.
 */
const IDS_PER_TURN = 2 ** 27;

/** Longer than any conversation that a stream tells; what was said before is stored by then, or gone. */
const MESSAGES_AT_MOST = 10_000;

/** Which attempts have said what, as far as a stream has told. */
export interface Turns {
  hear(event: Event): void;
  /** Of the attempt that was heard last; 0: none was. */
  readonly newest: number;
  /** Whether it has told nothing of the state: it began over the other wire, while nobody listened. */
  readonly isUntold: boolean;
  /** Another number as soon as something else is left over. */
  readonly version: number;
  /**
   * Whether an earlier attempt than the one that was heard last has said this message, and the state does not have it: its server or its
   * process has died, or lost the database. Of a graph that keeps no messages nothing is left over: nobody can say which ones it has.
   */
  isLeftOver(messageId: string): boolean;
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
  /** The last one that has told the state. */
  let told = 0;
  let version = 0;
  /** As the values told that were heard last. */
  let stored: ReadonlySet<unknown> | undefined;
  const turnsOfMessages = new Map<string, number>();
  const listeners = new Set<() => void>();
  const noteMessage = (id: string, turn: number): void => {
    const [oldest] = turnsOfMessages.keys();
    if (turnsOfMessages.size >= MESSAGES_AT_MOST && oldest !== undefined) turnsOfMessages.delete(oldest);
    turnsOfMessages.set(id, turn);
  };
  return {
    hear({ seq, method, params }) {
      if (typeof seq !== "number") return;
      const turn = Math.floor(seq / IDS_PER_TURN);
      const isOfState = method === "values" && params.namespace.length === 0;
      if (isOfState) {
        stored = idsOf(params.data);
        told = Math.max(told, turn);
      }
      if (method === "messages") {
        const { event, id } = params.data as { event?: unknown; id?: unknown };
        if (event === "message-start" && typeof id === "string") noteMessage(id, turn);
      }
      if (turn <= newest && !isOfState) return;
      newest = Math.max(newest, turn);
      version += 1;
      for (const tell of listeners) tell();
    },
    get newest() {
      return newest;
    },
    get isUntold() {
      return told < newest;
    },
    get version() {
      return version;
    },
    isLeftOver: (id) =>
      (turnsOfMessages.get(id) ?? newest) < newest && stored !== undefined && !stored.has(id),
    subscribe(onChange) {
      listeners.add(onChange);
      return () => listeners.delete(onChange);
    },
  };
};
