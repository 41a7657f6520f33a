import type { EventReader } from "../../../engine/events/transports/event-sink.ts";
import { toFrame, type ThreadEvent } from "./frames.ts";

/** What a subscription is told next. */
export interface Sent {
  /** In their order; none where the subscription has not asked for what there is. */
  events: readonly ThreadEvent[];
  /** The subscription has come to this id of the thread: nothing up to it follows. Infinity: it says no more where it is. */
  upTo: number;
}

/** One subscription's view of a thread; `"ended"` and `"lost"` as of an EventReader. */
export interface SubscriptionReader {
  next(): Promise<Sent | "ended" | "lost">;
  close(): void;
}

export interface MergedReader extends EventReader {
  /**
   * The subscription is told first what it is owed of what the others have been told; from there on all go on together. Answers
   * with what ends it. Whoever has closed the merged reader has closed what is added to it.
   */
  add(reader: SubscriptionReader): () => void;
}

interface Source {
  reader: SubscriptionReader;
  /** What it was told and the client was not. */
  heads: ThreadEvent[];
  upTo: number;
  isReading: boolean;
  /** It has kept others waiting, and does so no more until it is told something. */
  isLate: boolean;
}

/** How long is waited for a subscription that is told nothing (its thread may be gone for its caller), and for `settled`. */
const HELD_BACK_MS = 5_000;

const orLate = async (awaited: Promise<void> | undefined): Promise<void> => {
  if (awaited === undefined) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, HELD_BACK_MS)));
  await Promise.race([awaited, late]);
  clearTimeout(timer);
};

/**
 * What all subscriptions of a connection are told, in the order of the thread, each event once. A client gives what comes to all of its
 * subscriptions that match: the end of a run that came by one of them ended what it read by another, before that had been told the
 * run's values. Of each subscription one batch is held at a time. `settled`: what is to
 * be waited for before more is told.
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

  /** The subscription whose next event is the thread's next. */
  const first = (): Source | undefined => {
    let found: Source | undefined;
    for (const source of sources) {
      const seq = source.heads[0]?.seq ?? Infinity;
      if (seq < (found?.heads[0]?.seq ?? Infinity)) found = source;
    }
    return found;
  };

  /** Those that may be told of something before this id. */
  const behind = (seq: number): Source[] =>
    [...sources].filter(({ heads, upTo, isLate }) => heads.length === 0 && upTo < seq && !isLate);

  const takeReady = (): ThreadEvent[] => {
    const [only, another] = sources;
    // Nearly every connection: nothing to put in order.
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
