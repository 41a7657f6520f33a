import type { Event } from "@langchain/protocol";

/**
 * Event ids per turn; each attempt at a run has its own turn (src/engine/events/event-ids.ts). Part of the
 * wire.
 */
const IDS_PER_TURN = 2 ** 27;

/** Longer than any streamed conversation; older messages are stored by then, or gone. */
const MESSAGES_AT_MOST = 10_000;

/** Records which attempt sent which message. */
export interface Turns {
  add(event: Event): void;
  /** The newest turn received; 0: none. */
  readonly newest: number;
  /** Whether the newest turn sent no state: the run uses the other wire and the reader joined late. */
  readonly lacksState: boolean;
  /** Changes when `isDiscarded` may change. */
  readonly version: number;
  /**
   * Whether an earlier attempt sent this message and the state does not contain it: the attempt died or lost
   * the database. False for a graph without messages in its state, because the check is impossible there.
   */
  isDiscarded(messageId: string): boolean;
  /** Notifies of changes of `version`. */
  subscribe(onChange: () => void): () => void;
}

const idsOf = (values: unknown): ReadonlySet<unknown> | undefined => {
  const messages = (values as { messages?: unknown } | null | undefined)?.messages;
  if (!Array.isArray(messages)) return undefined;
  return new Set((messages as ({ id?: unknown } | null)[]).map((message) => message?.id));
};

export const createTurns = (): Turns => {
  let newest = 0;
  /** The newest turn that sent a state. */
  let newestWithState = 0;
  let version = 0;
  /** Message ids in the newest state. */
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
