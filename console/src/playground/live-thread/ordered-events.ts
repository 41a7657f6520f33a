import type { ThreadStream } from "@langchain/langgraph-sdk";
import type { Event } from "@langchain/protocol";

/** Finished messages that are kept besides the growing ones. */
const MESSAGES_REMEMBERED = 8;

const isFinished = (events: readonly Event[]): boolean => {
  const { event } = (events.at(-1)?.params.data ?? {}) as { event?: unknown };
  return event === "message-finish" || event === "error";
};

const messageOf = ({ params }: Event): string => {
  const { run_id, id } = params.data as { run_id?: unknown; id?: unknown };
  return [...params.namespace, run_id ?? id].join("|");
};

/** Keeps the events of growing messages and the newest state. */
const createOrder = () => {
  const messages = new Map<string, Event[]>();
  const states = new Map<string, number>();
  /** Messages with an event that came out of order. */
  const late = new Set<string>();

  const forget = (): void => {
    for (const [key, events] of messages) {
      if (messages.size <= MESSAGES_REMEMBERED) return;
      if (isFinished(events) && !late.has(key)) messages.delete(key);
    }
  };

  return {
    get isLate(): boolean {
      return late.size > 0;
    },
    /** Whether to pass the event on now. */
    add(event: Event): boolean {
      const { seq = 0, method, params } = event;
      if (method === "values") {
        const key = params.namespace.join("|");
        if (seq < (states.get(key) ?? 0)) return false;
        states.set(key, seq);
      }
      if (method !== "messages") return true;
      const key = messageOf(event);
      const events = messages.get(key) ?? [];
      messages.set(key, events);
      const index = events.findLastIndex((known) => (known.seq ?? 0) < seq) + 1;
      if (index < events.length) late.add(key);
      events.splice(index, 0, event);
      forget();
      return !late.has(key);
    },
    /** All events of each late message, in order. They replace the reader's copy of the message. */
    *replay(): Generator<Event> {
      for (const key of late) yield* messages.get(key) ?? [];
      late.clear();
    },
  };
};

const TICK = Symbol("a moment");
const nextTick = (): Promise<typeof TICK> => new Promise((resolve) => setTimeout(resolve, 0, TICK));

async function* inOrder(source: AsyncIterator<Event>): AsyncGenerator<Event, void, undefined> {
  const order = createOrder();
  try {
    for (let pending = source.next(); ;) {
      const result = await (order.isLate ? Promise.race([pending, nextTick()]) : pending);
      if (result === TICK || result.done === true) yield* order.replay();
      if (result === TICK) continue;
      if (result.done === true) return;
      pending = source.next();
      if (order.add(result.value)) yield result.value;
    }
  } finally {
    await source.return?.();
  }
}

/**
 * Puts the events of subgraphs in order. For a new reader the official client opens a second stream from the
 * beginning while the first one continues, so the end of a message may arrive before its start.
 */
export const orderEvents = (thread: ThreadStream): void => {
  const subscribe = thread.subscribe.bind(thread) as (...args: unknown[]) => Promise<AsyncIterable<Event>>;
  thread.subscribe = (async (...args: unknown[]) => {
    const handle = await subscribe(...args);
    const [{ namespaces = [] }] = args as [{ namespaces?: string[][] }];
    // The root graph has only the first stream.
    if (!namespaces.some((namespace) => namespace.length > 0)) return handle;
    const iterate = handle[Symbol.asyncIterator].bind(handle);
    return Object.assign(handle, { [Symbol.asyncIterator]: () => inOrder(iterate()) });
  }) as never;
};
