import { threadOffset } from "./event-ids.ts";
import type { EventSource, LogEvents, RunEvent } from "./log.ts";
import { LeaseLostError } from "../../platform/domain/errors.ts";
import { News } from "./waiting.ts";
import { isOfWire, isProtocolEvent, type Wire } from "./wires.ts";

export interface RunChannelOptions extends EventSource {
  firstSeq: number;
  /** This user may read kept events after the run is gone. */
  userId?: string | undefined;
  keep: boolean;
  /**
   * For a resumable run: stores events before readers see them, so that a client can resume by id. A failure
   * makes the readers `lost`, and the attempt stores nothing more.
   */
  log?: LogEvents | undefined;
  /** The first event after `metadata` has a reader or a log, and is not the run's error. */
  onFirstOfGraph?: (() => void) | undefined;
}

/** A reader further behind is `lost`. Its client may resume from the event log if the run is resumable. */
const KEPT_CHARACTERS = 8 * 1024 * 1024;
/**
 * After this many characters the graph pauses for the log and the sockets. Much less than KEPT_CHARACTERS, or prompt
 * readers would fall behind.
 */
const PAUSE_CHARACTERS = 1024 * 1024;
const EVENT_OVERHEAD_CHARACTERS = 120;

/** The events of one attempt, in memory. Readers hold positions, so a slow reader blocks nothing. */
export class RunChannel {
  readonly threadId: string;
  readonly runId: string;
  readonly attempt: number;
  readonly turn: number;
  readonly userId: string | undefined;
  readonly firstSeq: number;
  readonly #threadOffset: number | undefined;
  /** Consecutive ids. The oldest kept event is at #head, because `shift` costs the array's length. */
  #events: RunEvent[] = [];
  #head = 0;
  /** The first event, always kept: every stream begins with it. */
  #opening: RunEvent | undefined;
  #keptCharacters = 0;
  #nextSeq: number;
  /** Readers see events below this id: all, or those committed to the log. */
  #visibleSeq: number;
  #keep: boolean;
  #closed = false;
  #isLogEnded = false;
  #wakers = new Set<() => void>();
  #log: LogEvents | undefined;
  /** The first event, if it must still be logged but is no longer in #events. */
  #unlogged: RunEvent | undefined;
  #logging: Promise<void> | undefined;
  #logFailure: unknown;
  /** Readers see only logged events, because they may resume by id. */
  readonly #isDurable: boolean;
  #charactersSincePause = 0;
  #onWanted: (() => void) | undefined;
  #publishesProtocol = false;
  readonly #onFirstOfGraph: (() => void) | undefined;

  constructor(options: RunChannelOptions) {
    this.threadId = options.threadId;
    this.runId = options.runId;
    this.attempt = options.attempt;
    this.turn = options.turn;
    this.#threadOffset = threadOffset(options);
    this.userId = options.userId;
    this.firstSeq = options.firstSeq;
    this.#nextSeq = options.firstSeq;
    this.#visibleSeq = options.firstSeq;
    this.#keep = options.keep;
    this.#log = options.log;
    this.#isDurable = options.log !== undefined;
    this.#onFirstOfGraph = options.onFirstOfGraph;
  }

  /**
   * Resolves when the log has all events so far; undefined if it already has, or if there is none. Rejects for a
   * resumable run if the log will never have them: what depends on them must not be stored either.
   */
  logged(): Promise<void> | undefined {
    const upTo = this.#nextSeq;
    const isSettled = (): boolean =>
      !this.hasLog || this.#closed || (this.#visibleSeq >= upTo && this.#unlogged === undefined);
    const refusal = (): unknown => {
      if (!this.#isDurable) return undefined;
      return this.#logFailure ?? (this.#closed ? new LeaseLostError(this.runId, this.attempt) : undefined);
    };
    if (refusal() === undefined && isSettled()) return undefined;
    return new Promise((resolve, reject) => {
      const poll = (): void => {
        const error = refusal();
        if (error === undefined && !isSettled()) return;
        this.#wakers.delete(poll);
        if (error === undefined) resolve();
        else reject(error as Error);
      };
      this.#wakers.add(poll);
      poll();
    });
  }

  /** False after a failure if events are logged only for other processes. */
  get hasLog(): boolean {
    return this.#log !== undefined && (this.#isDurable || this.#logFailure === undefined);
  }

  /** Readers must not see what can't be replayed. */
  get #isLost(): boolean {
    return this.#isDurable && this.#logFailure !== undefined;
  }

  get wanted(): boolean {
    return this.#keep || this.#log !== undefined;
  }

  /** Calls `listener` when events get a reader or a log. */
  onWanted(listener: () => void): void {
    this.#onWanted = listener;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Id of the last visible event; without events, one less than the first id. */
  get lastSeq(): number {
    return this.#visibleSeq - 1;
  }

  get firstKeptSeq(): number {
    return this.#events[this.#head]?.seq ?? this.#nextSeq;
  }

  get opening(): RunEvent | undefined {
    return this.#opening;
  }

  get keptCharacters(): number {
    return this.#keptCharacters;
  }

  emit(event: string, data: () => string, checkpoint?: string): void {
    if (this.#closed || this.#isLost) return;
    const seq = this.#nextSeq;
    if (!this.wanted && seq !== this.firstSeq) {
      this.#visibleSeq = this.#nextSeq += 1;
      return;
    }
    // An event that can't be serialized must not use an id: the next one would be taken for it, and be lost.
    const kept: RunEvent = { seq, event, data: data() };
    this.#nextSeq += 1;
    if (seq === this.firstSeq + 1 && event !== "error") this.#onFirstOfGraph?.();
    this.#publishesProtocol ||= isProtocolEvent(event);
    if (checkpoint !== undefined) kept.checkpoint = checkpoint;
    if (this.#threadOffset !== undefined) kept.threadSeq = seq + this.#threadOffset;
    this.#opening ??= kept;
    if (!this.wanted) {
      this.#visibleSeq = this.#nextSeq;
      return;
    }
    this.#events.push(kept);
    this.#keptCharacters += kept.data.length + EVENT_OVERHEAD_CHARACTERS;
    this.#charactersSincePause += kept.data.length + EVENT_OVERHEAD_CHARACTERS;
    if (this.hasLog) this.#writeLog();
    else this.#show(this.#nextSeq);
  }

  /**
   * Logs events for readers in other processes, from the oldest kept one. Readers here then wait for the log, too,
   * unless it fails.
   */
  startLogging(log: LogEvents): void {
    if (this.#log !== undefined || this.#isLogEnded || this.#closed) return;
    this.#log = log;
    if (this.#opening !== undefined && this.#opening.seq < this.firstKeptSeq) this.#unlogged = this.#opening;
    this.#visibleSeq = Math.min(this.#visibleSeq, this.firstKeptSeq);
    this.#onWanted?.();
    this.#writeLog();
  }

  get needsPause(): boolean {
    return this.#charactersSincePause > PAUSE_CHARACTERS;
  }

  /** Waits for the log and a turn of the event loop, never for a reader. */
  async pause(): Promise<void> {
    await new Promise(setImmediate);
    await this.#logging;
    this.#charactersSincePause = 0;
  }

  /**
   * No log can start afterwards. Resolves when every event is logged; rejects if the log refused one (lost
   * lease).
   */
  async endLog(): Promise<void> {
    this.#isLogEnded = true;
    for (;;) {
      while (this.#logging !== undefined) await this.#logging;
      if (this.#logFailure !== undefined) throw this.#logFailure as Error;
      if (this.#log === undefined || this.#visibleSeq === this.#nextSeq) return;
      this.#writeLog();
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wake();
  }

  attach(waker: () => void): () => void {
    this.#wakers.add(waker);
    const wasWanted = this.wanted;
    // Kept from now on, because a reader may lose its connection and resume.
    this.#keep = true;
    if (!wasWanted) this.#onWanted?.();
    return () => {
      this.#wakers.delete(waker);
    };
  }

  /** Visible events after `after`; undefined if one of them was dropped. */
  read(after: number): RunEvent[] | undefined {
    if (this.#isLost) return undefined;
    const first = this.firstKeptSeq;
    if (after + 1 < first && this.#visibleSeq > after + 1) return undefined;
    const start = Math.max(0, after + 1 - first);
    const end = this.#visibleSeq - first;
    return start >= end ? [] : this.#events.slice(this.#head + start, this.#head + end);
  }

  seenOver(events: RunEvent[], wire: Wire): RunEvent[] {
    if (!this.#publishesProtocol && wire === "first") return events;
    return events.filter(({ event }) => isOfWire(event, wire));
  }

  #show(upTo: number): void {
    this.#visibleSeq = upTo;
    // Readers of both wires share the channel, so it keeps twice as much.
    const atMost = this.#publishesProtocol ? 2 * KEPT_CHARACTERS : KEPT_CHARACTERS;
    while (this.#keptCharacters > atMost) {
      const oldest = this.#events[this.#head];
      if (oldest === undefined || oldest.seq >= this.#visibleSeq - 1) break;
      this.#head += 1;
      this.#keptCharacters -= oldest.data.length + EVENT_OVERHEAD_CHARACTERS;
    }
    if (this.#head > this.#events.length / 2) {
      this.#events = this.#events.slice(this.#head);
      this.#head = 0;
    }
    this.#wake();
  }

  /** Makes the readers of a resumable run `lost`. Other runs continue in memory. */
  #fail(error: unknown): void {
    this.#logFailure ??= error;
    if (!this.#isDurable) return this.#show(this.#nextSeq);
    this.#events = [];
    this.#head = 0;
    this.#keptCharacters = 0;
    this.#wake();
  }

  #wake(): void {
    for (const waker of this.#wakers) waker();
  }

  #writeLog(): void {
    if (this.#logging !== undefined || this.#log === undefined || this.#logFailure !== undefined) return;
    const log = this.#log;
    this.#logging = (async () => {
      // Collects the events of this tick, because a graph emits in bursts.
      await new Promise(setImmediate);
      while (this.#visibleSeq < this.#nextSeq || this.#unlogged !== undefined) {
        const batch = this.#events.slice(this.#head + Math.max(0, this.#visibleSeq - this.firstKeptSeq));
        if (this.#unlogged !== undefined) batch.unshift(this.#unlogged);
        const upTo = this.#nextSeq;
        await log(batch, () => !this.#closed);
        this.#unlogged = undefined;
        this.#show(upTo);
      }
    })()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#logging = undefined;
        // Some events came after the last batch.
        if (this.#visibleSeq < this.#nextSeq) this.#writeLog();
      });
  }
}

export interface RunReader {
  /** `"lost"`: events were dropped or can't be read. Drop the connection, so that the client resumes. */
  next(): Promise<RunEvent[] | "ended" | "lost">;
  /** A pending `next` resolves to `"ended"`. */
  close(): void;
}

export interface ChannelReaderOptions {
  channel: RunChannel;
  after: number;
  /** Begin with the run's `metadata` even if `after` is later. */
  withOpening: boolean;
  wire: Wire;
  /** False if the channel was closed because this process stops. */
  hasEnded: () => boolean;
}

export const readChannel = ({
  channel,
  after: from,
  withOpening,
  wire,
  hasEnded,
}: ChannelReaderOptions): RunReader => {
  let after = from;
  let done = false;
  let opening =
    withOpening && channel.opening !== undefined && channel.opening.seq <= from ? channel.opening : undefined;
  const news = new News();
  const detach = channel.attach(news.come);
  return {
    async next() {
      for (;;) {
        if (done) return "ended";
        if (opening !== undefined) {
          const first = [opening];
          opening = undefined;
          return first;
        }
        news.forget();
        const events = channel.read(after);
        if (events === undefined) return "lost";
        // Clients read the run's status at its error, so the end is stored first.
        if (events.at(-1)?.event === "error" && !hasEnded()) events.pop();
        const last = events.at(-1);
        if (last !== undefined) {
          after = last.seq;
          const seen = channel.seenOver(events, wire);
          if (seen.length > 0) return seen;
          continue;
        }
        if (hasEnded()) return "ended";
        if (channel.closed) return "lost";
        await news.wait();
      }
    },
    close() {
      done = true;
      detach();
      news.come();
    },
  };
};

/**
 * Adds the `error` event of a failed run if the reader did not deliver one: a clean end alone would look like
 * success. `isEmpty`: the reader delivered nothing.
 */
export const withFailure = (
  reader: RunReader,
  failureOf: (isEmpty: boolean) => Promise<RunEvent | "lost" | undefined>,
): RunReader => {
  let isEmpty = true;
  let published = false;
  let closed = false;
  return {
    async next() {
      const events = published ? "ended" : await reader.next();
      if (Array.isArray(events)) published = events.some(({ event }) => event === "error");
      if (events !== "ended") isEmpty = false;
      if (events !== "ended" || published || closed) return events;
      published = true;
      const failure = await failureOf(isEmpty);
      if (failure === "lost") return failure;
      return failure === undefined ? "ended" : [failure];
    },
    close() {
      closed = true;
      reader.close();
    },
  };
};
