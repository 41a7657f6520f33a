import type { EventReader } from "../../../engine/events/transports/event-sink.ts";
import { toFrame, type ThreadEvent } from "./frames.ts";

export interface Sent {
  /** In order. */
  events: readonly ThreadEvent[];
  /** No event up to this id follows. Infinity: unknown. */
  upTo: number;
}

/** `"ended"` and `"lost"` mean the same as in EventReader. */
export interface SubscriptionReader {
  next(): Promise<Sent | "ended" | "lost">;
  close(): void;
}

export interface MergedReader extends EventReader {
  /** Adds a subscription, which first catches up with the others. Returns a function that ends it. */
  add(reader: SubscriptionReader): () => void;
}

interface Source {
  reader: SubscriptionReader;
  /** Not sent yet. */
  heads: ThreadEvent[];
  upTo: number;
  isReading: boolean;
  /** The subscription has delayed the others once, and delays them again only after its next event. */
  isLate: boolean;
}

/** The longest delay by a silent subscription or by `settled`. */
const HELD_BACK_MS = 5_000;

const orLate = async (awaited: Promise<void> | undefined): Promise<void> => {
  if (awaited === undefined) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, HELD_BACK_MS)));
  await Promise.race([awaited, late]);
  clearTimeout(timer);
};

/**
 * Merges a connection's subscriptions in the order of the thread. A client gives each event to all matching
 * subscriptions, so an early end ended a subscription without its values.
 */
export const mergeReaders = (settled: () => Promise<void> | undefined = () => undefined): MergedReader => {
  const sources = new Set<Source>();
  let isClosed = false;
  let end: { how: "lost" } | { fault: unknown } | undefined;
  let wake: () => void = () => undefined;

  const take = (source: Source, sent: Sent | "ended" | "lost"): void => {
    if (!sources.has(source)) return;
    if (sent === "ended") sources.delete(source);
    else if (sent === "lost") end ??= { how: "lost" };
    else {
      source.heads.push(...sent.events);
      source.upTo = Math.max(source.upTo, sent.upTo);
      source.isLate = false;
    }
  };

  const readOn = (source: Source): void => {
    if (source.isReading || source.heads.length > 0) return;
    source.isReading = true;
    void source.reader
      .next()
      .then((sent) => take(source, sent))
      .catch((fault: unknown) => {
        end ??= { fault };
      })
      .finally(() => {
        source.isReading = false;
        wake();
      });
  };

  const first = (): Source | undefined => {
    let found: Source | undefined;
    for (const source of sources) {
      const seq = source.heads[0]?.seq ?? Infinity;
      if (seq < (found?.heads[0]?.seq ?? Infinity)) found = source;
    }
    return found;
  };

  const behind = (seq: number): Source[] =>
    [...sources].filter(({ heads, upTo, isLate }) => heads.length === 0 && upTo < seq && !isLate);

  const takeReady = (): ThreadEvent[] => {
    const [only, another] = sources;
    // Nearly every connection has one subscription.
    if (only !== undefined && another === undefined) return only.heads.splice(0);
    const ready: ThreadEvent[] = [];
    for (;;) {
      const event = first()?.heads[0];
      if (event === undefined || behind(event.seq).length > 0) return ready;
      ready.push(event);
      for (const { heads } of sources) if (heads[0]?.seq === event.seq) heads.shift();
    }
  };

  const passLate = (): void => {
    const seq = first()?.heads[0]?.seq;
    if (seq === undefined) return;
    for (const source of behind(seq)) source.isLate = true;
    wake();
  };

  const woken = async (): Promise<void> => {
    const isHeldBack = first() !== undefined;
    const timer = isHeldBack ? setTimeout(passLate, HELD_BACK_MS) : undefined;
    await new Promise<void>((resolve) => (wake = resolve));
    clearTimeout(timer);
  };

  return {
    add(reader) {
      const source = { reader, heads: [], upTo: -1, isReading: false, isLate: false };
      const leave = (): void => {
        sources.delete(source);
        reader.close();
        wake();
      };
      if (isClosed) reader.close();
      else sources.add(source);
      wake();
      return leave;
    },
    async next() {
      for (;;) {
        await orLate(settled());
        if (isClosed) return "ended";
        if (end !== undefined) {
          if ("fault" in end) throw end.fault;
          return end.how;
        }
        for (const source of sources) readOn(source);
        const ready = takeReady();
        if (ready.length > 0) return ready.map(toFrame);
        await woken();
      }
    },
    close() {
      isClosed = true;
      for (const { reader } of sources) reader.close();
      wake();
    },
  };
};
