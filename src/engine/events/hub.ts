import { EventEmitter } from "node:events";
import { LRUCache } from "lru-cache";
import type { Caller } from "../../access/caller.ts";
import type { Room } from "../../http/room.ts";
import type { Faults } from "../../platform/domain/faults.ts";
import { LeaseLostError } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { Signal, Signals } from "../../platform/database/signals.ts";
import type { RunSelector } from "../queue/attempts.ts";
import { readChannel, RunChannel, type RunChannelOptions, type RunReader } from "./channel.ts";
import type { EventLog, EventSource, LogEvents, RunPhase } from "./log.ts";
import { readLog } from "./readers/log-reader.ts";
import {
  readThread,
  type BegunRun,
  type GoneRun,
  type ThreadReader,
  type Turns,
} from "./readers/thread-reader.ts";
import type { Wire } from "./wires.ts";

interface HubOptions {
  eventLog: EventLog;
  readRoom: Room;
  turns: Turns;
  signals: Signals;
  processId: string;
  phaseOf: (run: RunSelector) => Promise<RunPhase>;
  faults: Faults;
  logger: Logger;
}

interface ReadOptions extends RunSelector {
  /** Id of the reader's last event; -1: all kept events; undefined: `metadata` and new events. */
  after: number | undefined;
  resumable: boolean;
  wire?: Wire;
  caller?: Caller | undefined;
}

interface ThreadReadOptions extends Pick<ReadOptions, "caller"> {
  liveTurn?: number | undefined;
  endedRunId?: string | undefined;
}

interface OpenOptions extends Omit<RunChannelOptions, "log">, Pick<BegunRun, "graphId" | "resumable"> {
  /** The run has a reader in another process. */
  logged: boolean;
}

/** `begun`: the run began in this process just now. `gone`: the run was rolled back before it began. */
type Follower = (begun?: BegunRun, gone?: GoneRun) => void;

/** For clients that were disconnected just before the end. */
const LINGER_SECONDS = 30;
const LINGERING_CHARACTERS = 8 * 1024 * 1024;

/** Repeated for processes that lost a signal or started since. */
const FOLLOW_EVERY_MS = 5_000;
/** Covers three lost signals. */
const FOLLOWED_FOR_MS = 16_000;
const FOLLOWED_AT_MOST = 100_000;

/** The log may have older events of a resumable run. Other runs are read from memory even if events are missing. */
const readsMemory = (channel: RunChannel, after: number | undefined, resumable: boolean): boolean =>
  after === undefined || after + 1 >= channel.firstKeptSeq || !resumable;

const newEmitter = (): EventEmitter => new EventEmitter().setMaxListeners(0);

/** The channels of runs that execute here, or ended here a moment ago, and the readers of any run. */
export class Hub {
  readonly #channels = new Map<string, RunChannel>();
  /** Closed because their run ended, not because this process stops. */
  readonly #ended = new WeakSet<RunChannel>();
  readonly #lingering = new LRUCache<RunChannel, RunChannel>({
    maxSize: LINGERING_CHARACTERS,
    ttl: LINGER_SECONDS * 1_000,
    ttlAutopurge: true,
    dispose: (channel) => this.#drop(channel),
  });
  /** By run: readers of the log. */
  readonly #watchers = newEmitter();
  /**
   * By thread: readers in this process. Runs that begin on threads with readers in any process keep or log their events;
   * other runs pay three lookups.
   */
  readonly #followers = { first: newEmitter(), protocol: newEmitter() };
  readonly #followedElsewhere = {
    first: new LRUCache<string, true>({ max: FOLLOWED_AT_MOST, ttl: FOLLOWED_FOR_MS }),
    protocol: new LRUCache<string, true>({ max: FOLLOWED_AT_MOST, ttl: FOLLOWED_FOR_MS }),
  };
  readonly #following: NodeJS.Timeout;
  readonly #unsubscribe: () => void;
  #stopped = false;

  constructor(private readonly options: HubOptions) {
    this.#unsubscribe = options.signals.subscribe((signal) => this.#receive(signal));
    this.#following = setInterval(() => {
      const { first, protocol } = this.#followers;
      for (const threadId of new Set([...first.eventNames(), ...protocol.eventNames()]))
        this.#askToFollow(String(threadId));
    }, FOLLOW_EVERY_MS).unref();
  }

  open({ graphId, resumable, logged, ...attempt }: OpenOptions): RunChannel {
    const { threadId, runId, turn } = attempt;
    const before = this.#channels.get(runId);
    before?.close();
    if (before !== undefined) this.#lingering.delete(before);
    const { first, protocol } = this.#followers;
    const isFollowedHere = first.listenerCount(threadId) + protocol.listenerCount(threadId) > 0;
    const channel = new RunChannel({
      ...attempt,
      keep: attempt.keep || this.#watchers.listenerCount(runId) > 0 || isFollowedHere,
      log: resumable ? this.#logOf(attempt) : undefined,
    });
    const elsewhere = this.#followedElsewhere;
    if (!resumable && (logged || elsewhere.first.has(threadId) || elsewhere.protocol.has(threadId)))
      this.#logElsewhere(channel);
    this.#channels.set(runId, channel);
    this.#watchers.emit(runId);
    this.#wakeFollowers(threadId, { threadId, runId, graphId, turn, attempt: attempt.attempt, resumable });
    return channel;
  }

  /**
   * Call after the run's end is committed. Drops the oldest channels first, because the creator of a queued run may not
   * have begun to read.
   */
  end(channel: RunChannel): void {
    this.#ended.add(channel);
    channel.close();
    const { keptCharacters: size } = channel;
    if (size === 0 || size > LINGERING_CHARACTERS) this.#drop(channel);
    else this.#lingering.set(channel, channel, { size });
  }

  /** For a run that continues elsewhere: its readers here are `lost` and resume there. */
  abandon(channel: RunChannel): void {
    channel.close();
    this.#drop(channel);
  }

  /** True also for a while after the end. With `userId`: only for runs of this user. */
  holds(threadId: string, runId: string, userId?: string): boolean {
    const channel = this.#channels.get(runId);
    return channel?.threadId === threadId && (userId === undefined || channel.userId === userId);
  }

  /** False if events were dropped for space or never serialized. */
  holdsAllAfter(threadId: string, runId: string, after: number): boolean {
    const channel = this.#channels.get(runId);
    return channel?.threadId === threadId && after + 1 >= channel.firstKeptSeq;
  }

  logFor(runId: string): void {
    const channel = this.#channels.get(runId);
    if (channel !== undefined) this.#logElsewhere(channel);
  }

  /** Reads a run from memory if all missing events are there, else from the log until the run begins here. */
  read(options: ReadOptions): RunReader {
    const { threadId, runId, after, resumable, wire = "first", caller } = options;
    const { eventLog, readRoom, signals, phaseOf, logger } = this.options;
    const channel = this.#channels.get(runId);
    if (channel !== undefined && readsMemory(channel, after, resumable)) {
      const oldest = channel.firstKeptSeq - 1;
      const from =
        after === undefined
          ? channel.lastSeq
          : // A reader of an earlier attempt continues with the start of this one.
            Math.max(after, after < 0 ? oldest : channel.firstSeq - 1);
      return this.#readChannel(channel, from, wire, after === undefined || after < 0);
    }
    logger.trace({ runId }, "reading a run from the event log");
    /**
     * Kept, because the channel may be dropped for space before the database answers (1 of 50 streams of
     * short runs).
     */
    let begun: RunChannel | undefined;
    return readLog({
      eventLog,
      run: { threadId, runId },
      after,
      wire,
      resumable,
      phaseOf,
      watch: (wake) => {
        const notice = (isUnlogged?: boolean): void => {
          begun = this.#channels.get(runId) ?? begun;
          wake(isUnlogged);
        };
        this.#watchers.on(runId, notice);
        return () => this.#watchers.off(runId, notice);
      },
      askForEvents: () => signals.send({ kind: "watch", threadId, runId }),
      onLocal: (from) => {
        const opened = this.#channels.get(runId) ?? begun;
        if (opened === undefined || opened === channel || !readsMemory(opened, from, resumable))
          return undefined;
        // From its first event, so that dropped events show as a loss, not as a gap.
        return this.#readChannel(opened, Math.max(from ?? -1, opened.firstSeq - 1), wire, false);
      },
      readRoom,
      caller,
      isStopped: () => this.#stopped,
      logger,
    });
  }

  /** With the protocol wire, later runs in any process publish protocol events. */
  followThread(threadId: string, wire: Wire, onBegun?: (run: BegunRun) => void): () => void {
    return this.#follow(threadId, wire, (begun) => {
      if (begun !== undefined) onBegun?.(begun);
    });
  }

  wantsProtocol(threadId: string): boolean {
    return (
      this.#followers.protocol.listenerCount(threadId) > 0 || this.#followedElsewhere.protocol.has(threadId)
    );
  }

  /**
   * Reads all runs of a thread, including later ones; the thread may not exist yet. `after`: the last `threadSeq`; 0: all
   * kept events. `liveTurn`: of this attempt, reads only `metadata` and new events. `endedRunId`: sends this run's end
   * in its turn, even without readable events.
   */
  readThread(
    threadId: string,
    after: number,
    wire: Wire,
    { liveTurn, endedRunId, caller }: ThreadReadOptions = {},
  ): ThreadReader {
    const ended = endedRunId === undefined ? [] : [endedRunId];
    let current: string | undefined;
    let live = liveTurn;
    return readThread({
      threadId,
      after,
      turns: this.options.turns,
      readRun: (run: BegunRun, from) => {
        current = run.runId;
        const isLive = run.turn === live;
        // In a recreated thread this turn belongs to another run.
        live = undefined;
        return this.read({ ...run, after: isLive ? undefined : from, wire, caller });
      },
      held: () => {
        const here = [...this.#channels.values()].filter((channel) => channel.threadId === threadId);
        return [...here.map(({ runId }) => runId), ...ended];
      },
      follow: (wake) =>
        this.#follow(threadId, wire, (begun, gone) => {
          // News of another run may mean that the current one has ended.
          if (current !== undefined) this.#watchers.emit(current);
          wake(begun, gone);
        }),
      isStopped: () => this.#stopped,
      logger: this.options.logger,
    });
  }

  /** Readers of unfinished runs are `lost`, so that their clients resume on another process. */
  close(): void {
    this.#stopped = true;
    this.#unsubscribe();
    clearInterval(this.#following);
    this.#lingering.clear();
    for (const channel of this.#channels.values()) channel.close();
    this.#channels.clear();
    for (const emitter of [this.#watchers, this.#followers.first, this.#followers.protocol])
      for (const name of emitter.eventNames()) emitter.emit(name);
  }

  #drop(channel: RunChannel): void {
    if (this.#channels.get(channel.runId) === channel) this.#channels.delete(channel.runId);
  }

  #receive({ kind, threadId, runId }: Signal): void {
    if (kind === "events" || kind === "ended") this.#watchers.emit(runId);
    if (kind === "unlogged") this.#watchers.emit(runId, true);
    if (kind === "watch") this.logFor(runId);
    if (runId === this.options.processId) return;
    if (kind === "follow") this.#followedElsewhere.first.set(threadId, true);
    if (kind === "follow-protocol") this.#followedElsewhere.protocol.set(threadId, true);
  }

  /** Signals readers in other processes that events are stored. */
  #logOf(source: EventSource): LogEvents {
    const { eventLog, signals, faults } = this.options;
    const { threadId, runId } = source;
    return async (events, isWanted) => {
      faults.reached("between-checkpoint-and-event");
      await eventLog.append(source, events, isWanted);
      signals.send({ kind: "events", threadId, runId });
    };
  }

  /** For readers in other processes, who can't read on if the log refuses an event. */
  #logElsewhere(channel: RunChannel): void {
    const log = this.#logOf(channel);
    channel.startLogging(async (...given) => {
      try {
        await log(...given);
      } catch (error) {
        const { threadId, runId } = channel;
        if (!(error instanceof LeaseLostError))
          this.options.signals.send({ kind: "unlogged", threadId, runId });
        throw error;
      }
    });
  }

  #readChannel(channel: RunChannel, after: number, wire: Wire, withOpening: boolean): RunReader {
    return readChannel({ channel, after, wire, withOpening, hasEnded: () => this.#ended.has(channel) });
  }

  #askToFollow(threadId: string): void {
    const isOverProtocol = this.#followers.protocol.listenerCount(threadId) > 0;
    const kind = isOverProtocol ? "follow-protocol" : "follow";
    this.options.signals.send({ kind, threadId, runId: this.options.processId });
  }

  #wakeFollowers(threadId: string, begun: BegunRun): void {
    this.#followers.first.emit(threadId, begun);
    this.#followers.protocol.emit(threadId, begun);
  }

  #follow(threadId: string, wire: Wire, follower: Follower): () => void {
    this.#followers[wire].on(threadId, follower);
    const unsubscribe = this.options.signals.subscribeToThread(threadId, ({ kind, runId, turn }) => {
      const gone = wire === "protocol" && turn !== undefined ? { runId, turn } : undefined;
      if (kind !== "follow" && kind !== "follow-protocol") follower(undefined, gone);
    });
    this.#askToFollow(threadId);
    return () => {
      unsubscribe();
      this.#followers[wire].off(threadId, follower);
    };
  }
}
