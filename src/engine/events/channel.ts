import { threadOffset } from "./event-ids.ts";
import type { RunChannelOptions } from "./channel-options.ts";
import type { RunEvent } from "./log.ts";
import { isOfWire, isProtocolEvent, type Wire } from "./wires.ts";

/**
 * Bytes of events that a channel keeps for readers that are behind or come back. A reader that falls further
 * behind is dropped; it can resume from the event log if the run is resumable.
 */
const KEPT_BYTES = 8 * 1024 * 1024;
/**
 * After so many bytes a graph that emits without a pause lets the event log and the sockets have a turn. Much less than
 * KEPT_BYTES, or readers that keep up would be told that they are behind. It also bounds what waits for the log.
 */
const PAUSE_BYTES = 1024 * 1024;
/** What an event costs in memory beside its data. */
const EVENT_OVERHEAD_BYTES = 120;

/**
 * The events of one attempt in the memory of the process that executes it, shared by all its readers there. Data are
 * serialized only if `wanted`. Readers hold a position, so a slow one holds up nothing and KEPT_BYTES bound the memory.
 */
export class RunChannel {
  readonly threadId: string;
  readonly runId: string;
  readonly attempt: number;
  readonly turn: number;
  readonly userId: string | undefined;
  readonly firstSeq: number;
  readonly #threadOffset: number | undefined;
  /** Consecutive; the oldest that is kept stands at #head, since taking it off the front costs its whole length. */
  #events: RunEvent[] = [];
  #head = 0;
  /** The first event, kept in any case: every stream begins with it. */
  #opening: RunEvent | undefined;
  #keptBytes = 0;
  /** Id of the next event to be emitted. */
  #nextSeq: number;
  /** Readers see events below this id: all, or those that the log has committed. */
  #visibleSeq: number;
  #keep: boolean;
  #closed = false;
  #isLogEnded = false;
  #wakers = new Set<() => void>();
  #log: RunChannelOptions["log"];
  /** The first event, if it is to be logged though it is no longer among those that are kept. */
  #unlogged: RunEvent | undefined;
  #logging: Promise<void> | undefined;
  #logFailure: unknown;
  /** Whether readers may see only what is in the log, for as long as the channel lasts: they were told ids to come back with. */
  readonly #isDurable: boolean;
  #bytesSincePause = 0;
  #onWanted: (() => void) | undefined;
  /** Whether there are events of the protocol wire among the others. */
  #publishesProtocol = false;

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
  }

  /** Whether events reach the log before readers here see them; not any more if they were logged for others and can't be. */
  get #isLogged(): boolean {
    return this.#log !== undefined && (this.#isDurable || this.#logFailure === undefined);
  }

  /** The log has refused events of this attempt, so it has not all that readers elsewhere would need. */
  get isUnlogged(): boolean {
    return this.#logFailure !== undefined;
  }

  /** Resolves when the log has what was emitted so far, or has refused it; undefined if it has. */
  logged(): Promise<void> | undefined {
    const upTo = this.#nextSeq;
    const isSettled = (): boolean =>
      !this.hasLog || this.#closed || (this.#visibleSeq >= upTo && this.#unlogged === undefined);
    if (isSettled()) return undefined;
    return new Promise((resolve) => {
      const poll = (): void => {
        if (!isSettled()) return;
        this.#wakers.delete(poll);
        resolve();
      };
      this.#wakers.add(poll);
    });
  }

  /** Events are logged, and none was refused. */
  get hasLog(): boolean {
    return this.#log !== undefined && this.#logFailure === undefined;
  }

  /** What can't be logged can't be replayed, so nothing of it may be seen. */
  get #isLost(): boolean {
    return this.#isDurable && this.#logFailure !== undefined;
  }

  /** Whether anything is gained by serializing an event. */
  get wanted(): boolean {
    return this.#keep || this.#log !== undefined;
  }

  /** Calls back when events are wanted that were not before, and when they are to be logged. */
  onWanted(listener: () => void): void {
    this.#onWanted = listener;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Id of the last event that readers can see; one less than the first id if there is none. */
  get lastSeq(): number {
    return this.#visibleSeq - 1;
  }

  /** Id of the oldest event that is still kept. */
  get firstKeptSeq(): number {
    return this.#events[this.#head]?.seq ?? this.#nextSeq;
  }

  get opening(): RunEvent | undefined {
    return this.#opening;
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** `data` makes one line of JSON; it is called only if somebody wants the event. `checkpoint`: see RunEvent. */
  emit(event: string, data: () => string, checkpoint?: string): void {
    if (this.#closed) return;
    const seq = this.#nextSeq;
    this.#nextSeq += 1;
    if (this.#isLost) return;
    if (!this.wanted && seq !== this.firstSeq) {
      this.#visibleSeq = this.#nextSeq;
      return;
    }
    this.#publishesProtocol ||= isProtocolEvent(event);
    const kept: RunEvent = { seq, event, data: data() };
    if (checkpoint !== undefined) kept.checkpoint = checkpoint;
    if (this.#threadOffset !== undefined) kept.threadSeq = seq + this.#threadOffset;
    this.#opening ??= kept;
    if (!this.wanted) {
      this.#visibleSeq = this.#nextSeq;
      return;
    }
    this.#events.push(kept);
    this.#keptBytes += kept.data.length + EVENT_OVERHEAD_BYTES;
    this.#bytesSincePause += kept.data.length + EVENT_OVERHEAD_BYTES;
    if (this.#isLogged) this.#writeLog();
    else this.#show(this.#nextSeq);
  }

  /**
   * Starts writing events to the log for readers on other processes: the first one, and from the oldest that is kept.
   * From then on readers here, too, see events when the log has them, or when it has failed.
   */
  startLogging(log: (events: RunEvent[]) => Promise<void>): void {
    if (this.#log !== undefined || this.#isLogEnded || this.#closed) return;
    this.#log = log;
    if (this.#opening !== undefined && this.#opening.seq < this.firstKeptSeq) this.#unlogged = this.#opening;
    this.#visibleSeq = Math.min(this.#visibleSeq, this.firstKeptSeq);
    this.#onWanted?.();
    this.#writeLog();
  }

  /** Whether whoever emits should wait for `pause()` first. */
  get needsPause(): boolean {
    return this.#bytesSincePause > PAUSE_BYTES;
  }

  /** Resolves when the log has what was emitted, and sockets had a turn. Never waits for a reader. */
  async pause(): Promise<void> {
    await new Promise(setImmediate);
    await this.#logging;
    this.#bytesSincePause = 0;
  }

  /**
   * No event comes any more, and the run is about to end: it is too late to begin a log. Resolves when every event is in the
   * log, if there is one; rejects if the log refused one (the lease was lost).
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

  /** No more events. Readers get what there is and then the end. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wake();
  }

  attach(waker: () => void): () => void {
    this.#wakers.add(waker);
    const wasWanted = this.wanted;
    // From now on: whoever has read may lose his connection and come back.
    this.#keep = true;
    if (!wasWanted) this.#onWanted?.();
    return () => {
      this.#wakers.delete(waker);
    };
  }

  /** Visible events after `after`; undefined if one of them is no longer kept. */
  read(after: number): RunEvent[] | undefined {
    if (this.#isLost) return undefined;
    const first = this.firstKeptSeq;
    if (after + 1 < first && this.#visibleSeq > after + 1) return undefined;
    const start = Math.max(0, after + 1 - first);
    const end = this.#visibleSeq - first;
    return start >= end ? [] : this.#events.slice(this.#head + start, this.#head + end);
  }

  /** What readers of a wire see of events that were read. */
  seenOver(events: RunEvent[], wire: Wire): RunEvent[] {
    if (!this.#publishesProtocol && wire === "first") return events;
    return events.filter(({ event }) => isOfWire(event, wire));
  }

  #show(upTo: number): void {
    this.#visibleSeq = upTo;
    // What is told over two wires takes twice as much: readers of either may be as far behind as those of a single one.
    const bytes = this.#publishesProtocol ? 2 * KEPT_BYTES : KEPT_BYTES;
    while (this.#keptBytes > bytes) {
      const oldest = this.#events[this.#head];
      if (oldest === undefined || oldest.seq >= this.#visibleSeq - 1) break;
      this.#head += 1;
      this.#keptBytes -= oldest.data.length + EVENT_OVERHEAD_BYTES;
    }
    if (this.#head > this.#events.length / 2) {
      this.#events = this.#events.slice(this.#head);
      this.#head = 0;
    }
    this.#wake();
  }

  /**
   * Readers of a resumable run are dropped, and it can't end before that is settled. Of another, which is logged for
   * readers elsewhere, those here go on in memory.
   */
  #fail(error: unknown): void {
    this.#logFailure ??= error;
    if (!this.#isDurable) return this.#show(this.#nextSeq);
    this.#events = [];
    this.#head = 0;
    this.#keptBytes = 0;
    this.#wake();
  }

  #wake(): void {
    for (const waker of this.#wakers) waker();
  }

  /** One batch in flight at a time; what is emitted meanwhile goes with the next. */
  #writeLog(): void {
    if (this.#logging !== undefined || this.#log === undefined || this.#logFailure !== undefined) return;
    const log = this.#log;
    this.#logging = (async () => {
      // Let the events of this tick gather: a graph emits them in bursts.
      await new Promise(setImmediate);
      while (this.#visibleSeq < this.#nextSeq || this.#unlogged !== undefined) {
        const batch = this.#events.slice(this.#head + Math.max(0, this.#visibleSeq - this.firstKeptSeq));
        if (this.#unlogged !== undefined) batch.unshift(this.#unlogged);
        const upTo = this.#nextSeq;
        await log(batch);
        this.#unlogged = undefined;
        this.#show(upTo);
      }
    })()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#logging = undefined;
        // Emitted after the last batch was gathered.
        if (this.#visibleSeq < this.#nextSeq) this.#writeLog();
      });
  }
}
