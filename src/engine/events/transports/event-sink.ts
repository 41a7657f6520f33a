import { isLossOfAccess } from "../../../access/auth/refusals.ts";
import { refusalOf } from "../../../http/errors.ts";

/** A client whose socket does not take a batch in this time is dropped, because it holds memory. */
export const STALLED_MS = 60_000;

export const WRITE_CHARACTERS = 64 * 1024;
/** STALLED_MS begins again after this much of a batch, so a large batch may take longer. */
const TAKEN_CHARACTERS = 1024 * 1024;

/** Never splits a surrogate pair, whose halves would be encoded as other characters. */
export function* inPieces(text: string): Generator<string, void> {
  for (let start = 0; start < text.length;) {
    let end = start + WRITE_CHARACTERS;
    const last = text.charCodeAt(end - 1);
    if (last >= 0xd800 && last <= 0xdbff) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}

export type DeliveryEnd = "ended" | "disconnected" | "dropped" | "refused";

export interface SentEvent {
  seq: number | string;
  event: string;
  data: string;
  /** Separate, so that all readers share the data of a large event. */
  before?: string;
  after?: string;
}

export interface EventReader {
  /** At least one event; `"ended"` and `"lost"` as in RunReader. */
  next(): Promise<readonly SentEvent[] | "ended" | "lost">;
  close(): void;
}

export type Written = "taken" | "gone" | "stalled";

/** Whether the room does not come until then. */
const isLate = async (room: Promise<unknown>, until: number): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<true>((resolve) => {
    timer = setTimeout(() => resolve(true), Math.max(0, until - performance.now()));
  });
  const isTooLate = await Promise.race([room.then(() => false), late]);
  clearTimeout(timer);
  return isTooLate;
};

/** `give`: writes a piece. Returns a promise if the socket has no room for the next one; it must resolve at the close. */
export const writePieces = async (
  pieces: Iterable<string>,
  give: (piece: string) => Promise<unknown> | undefined,
  isGone: () => boolean,
): Promise<Written> => {
  let since = performance.now();
  let given = 0;
  for (const piece of pieces) {
    if (isGone()) return "gone";
    if (given > TAKEN_CHARACTERS) {
      given = 0;
      since = performance.now();
    }
    given += piece.length;
    const room = give(piece);
    if (room !== undefined && (await isLate(room, since + STALLED_MS))) return isGone() ? "gone" : "stalled";
  }
  return isGone() ? "gone" : "taken";
};

/** One client's connection. Holds a bounded number of bytes for a client that does not read. */
export interface EventSink {
  readonly isGone: boolean;
  onGone(listener: () => void): void;
  /** Sends headers; the client may wait for them before the first event. */
  open(): void;
  /**
   * `"taken"`: there is room for more; `"stalled"`: the client reads too slowly and must be dropped. One call
   * at a time.
   */
  write(events: readonly SentEvent[]): Promise<Written>;
  /** Disconnects so that the client resumes instead of assuming the end of the run. */
  drop(): void;
  /** Releases what `open` took; the connection stays open. */
  close(): void;
}

/** A reader that rejects with a loss of access ends the delivery, too. */
export interface DeliveryAccess {
  /** Undefined if the owner of the access ends the delivery. */
  readonly signal?: AbortSignal;
  /** Undefined: the client is dropped. `after`: the id of the previous event. */
  closingEvent?: (reason: unknown, after: SentEvent["seq"] | undefined) => SentEvent;
  refuse?: (reason: unknown) => void;
}

export const lossOf = (reason: unknown): { error: string; message: string } => ({
  error: "AccessLost",
  message:
    refusalOf(reason)?.detail ?? "The server could not check whether you may go on reading; try again.",
});

/** Has the id of the previous event, so that a resuming client misses nothing. */
export const closingEvent: NonNullable<DeliveryAccess["closingEvent"]> = (reason, after = -1) => ({
  seq: after,
  event: "error",
  data: JSON.stringify(lossOf(reason)),
});

/**
 * Sends a reader's events until the reader ends, the client leaves or access is lost; closes both. `onFault`:
 * called with any other error; the client is dropped.
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
  // A pending write may wait for the client without end.
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
