import { isLossOfAccess } from "../../../access/auth/refusals.ts";

/** How a delivery came to its end. */
export type DeliveryEnd = "ended" | "disconnected" | "dropped" | "refused";

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

/** What ends a delivery because its client may read no more; so does a reader that rejects with a loss of access. */
export interface DeliveryAccess {
  /** Aborts when access is lost; left out: whoever holds the access ends the delivery himself. */
  readonly signal?: AbortSignal;
  /** What the client is told last; without it he is cut off. `after`: the id of what he was told before, if anything. */
  closingEvent?: (reason: unknown, after: SentEvent["seq"] | undefined) => SentEvent;
  /** Instead of a last event: cuts the client off in a way that says why. */
  refuse?: (reason: unknown) => void;
}

/**
 * Gives a client all events of a reader until that ends or the client goes. Closes both. `onFault`: the events could not be
 * read or written, for a reason that is neither's; the client was dropped. Once `access` is lost, nothing more of the reader is told.
 */
export const deliver = async (
  reader: EventReader,
  sink: EventSink,
  onFault: (error: unknown) => void,
  access?: DeliveryAccess,
): Promise<DeliveryEnd> => {
  sink.onGone(() => reader.close());
  let isWriting = false;
  let published: SentEvent["seq"] | undefined;
  // What waits to be taken has been told; how long it waits is the client's to say.
  const onLoss = (): void => (isWriting ? sink.drop() : reader.close());
  const drop = (): DeliveryEnd => {
    sink.drop();
    return "dropped";
  };
  const refuse = async (reason: unknown): Promise<DeliveryEnd> => {
    if (access?.refuse !== undefined) access.refuse(reason);
    else if (access?.closingEvent === undefined) sink.drop();
    else await sink.write([access.closingEvent(reason, published)]);
    return "refused";
  };
  const signal = access?.signal;
  signal?.addEventListener("abort", onLoss);
  if (signal?.aborted) onLoss();
  try {
    if (sink.isGone) return "disconnected";
    sink.open();
    for (;;) {
      const events = await reader.next().catch((error: unknown) => {
        if (isLossOfAccess(error)) return { lostBy: error };
        throw error;
      });
      if (sink.isGone) return "disconnected";
      if (signal?.aborted) return await refuse(signal.reason);
      if (typeof events === "object" && "lostBy" in events) return await refuse(events.lostBy);
      if (events === "lost") return drop();
      if (events === "ended") return "ended";
      isWriting = true;
      const written = await sink.write(events);
      isWriting = false;
      published = events.at(-1)?.seq ?? published;
      if (written === "gone") return "disconnected";
      if (written === "stalled") return drop();
    }
  } catch (error) {
    onFault(error);
    return drop();
  } finally {
    signal?.removeEventListener("abort", onLoss);
    sink.close();
    reader.close();
  }
};
