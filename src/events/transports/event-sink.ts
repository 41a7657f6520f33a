/** How a delivery came to its end. */
export type DeliveryEnd = "ended" | "disconnected" | "dropped";

/** An event as a client gets it. */
export interface SentEvent {
  /** What a client names that comes back for what is after it. */
  seq: number | string;
  event: string;
  /** One line of JSON. */
  data: string;
  /** What goes before and behind the data; apart from them, so that all readers of a large event share its text. */
  before?: string;
  after?: string;
}

/** What a client is given, piece by piece: the events of a run (a RunReader), or of a thread. */
export interface EventReader {
  /** The next events, at least one; `"ended"` and `"lost"` as of a RunReader. */
  next(): Promise<readonly SentEvent[] | "ended" | "lost">;
  close(): void;
}

/**
 * One client's connection, as `deliver` sees it. A transport (server-sent events, a WebSocket) makes one of its
 * socket. It holds a bounded number of bytes for a client that takes nothing, whatever it is given.
 */
export interface EventSink {
  /** The client has left, or was cut off. */
  readonly isGone: boolean;
  /** Calls back once, when the client leaves. */
  onGone(listener: () => void): void;
  /** Says that events will come; the client may wait for that before the first one. */
  open(): void;
  /**
   * Resolves when the client has taken so much that there is room for more: `"taken"`; `"gone"` if it left meanwhile;
   * `"stalled"` if it takes too little, and is to be cut off. Called with one batch at a time.
   */
  write(events: readonly SentEvent[]): Promise<"taken" | "gone" | "stalled">;
  /** Cuts the client off in a way that it does not take for the end of the run, so that it comes back. */
  drop(): void;
  /** Nothing more is written. Lets go of all that `open` took; the connection itself is its owner's. */
  close(): void;
}

/**
 * Gives a client all events of a reader until that ends or the client goes. Closes both. `onFault`: the events could not be
 * read or written, for a reason that is neither's; the client was dropped.
 */
export const deliver = async (
  reader: EventReader,
  sink: EventSink,
  onFault: (error: unknown) => void,
): Promise<DeliveryEnd> => {
  sink.onGone(() => reader.close());
  const drop = (): DeliveryEnd => {
    sink.drop();
    return "dropped";
  };
  try {
    if (sink.isGone) return "disconnected";
    sink.open();
    for (;;) {
      const events = await reader.next();
      if (sink.isGone) return "disconnected";
      if (events === "lost") return drop();
      if (events === "ended") return "ended";
      const written = await sink.write(events);
      if (written === "gone") return "disconnected";
      if (written === "stalled") return drop();
    }
  } catch (error) {
    onFault(error);
    return drop();
  } finally {
    sink.close();
    reader.close();
  }
};
