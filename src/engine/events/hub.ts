import type { Signals } from "../../platform/database/signals.ts";
import { LeaseLostError } from "../../platform/domain/errors.ts";
import type { Faults } from "../../platform/domain/faults.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { createFollowedThreads } from "./followed-threads.ts";
import { createHeldChannels } from "./held-channels.ts";
import type { EventLog, EventSource, RunAddress, RunEvent, RunPhase } from "./log.ts";
import { RunChannel } from "./channel.ts";
import type { RunChannelOptions } from "./channel-options.ts";
import type { RunReader } from "./readers/channel-reader.ts";
import { createReading, type ReadOptions } from "./readers/run-reader.ts";
import { readThread, type ThreadReader } from "./readers/thread-reader.ts";
import { createRunWatchers } from "./run-watchers.ts";
import type { BegunRun, Turns } from "./turns.ts";
import type { Wire } from "./wires.ts";

export interface HubOptions {
  eventLog: EventLog;
  turns: Turns;
  signals: Signals;
  processId: string;
  phaseOf: (run: RunAddress) => Promise<RunPhase>;
  /** Records that the log refused events of an attempt, for readers without signals. */
  noteUnlogged: (source: EventSource) => Promise<void>;
  /**
   * Records a reader in the database, where signals do not reach all processes: the run's events are logged
   * then, and unlogged ones are known to be missing. Undefined where signals reach all processes.
   */
  announceReader?: (run: RunAddress) => Promise<unknown>;
  faults: Faults;
  logger: Logger;
}

export interface ReadThreadOptions {
  /** The attempt with this turn is read from now on only, after its `metadata`. */
  liveTurn?: number | undefined;
  /** Sends the end of this run in its turn, even if no events are readable. */
  endedRunId?: string | undefined;
}

/**
 * The fan-out of this process. Runs that execute here are read from memory, other runs from the event log.
 */
export interface Hub {
  /** Called by the executor when an attempt starts. */
  open(
    options: Omit<RunChannelOptions, "log"> & { graphId: string; resumable: boolean; logged: boolean },
  ): RunChannel;
  /** Called by the executor after the run's end is committed. */
  end(channel: RunChannel): void;
  /**
   * Called by the executor when the run continues elsewhere: its readers here are `lost` and resume there.
   */
  abandon(channel: RunChannel): void;
  /**
   * Whether this process has the run's events in memory, also for a while after the end; with `userId`, only
   * for runs of this user.
   */
  holds(threadId: string, runId: string, userId?: string): boolean;
  /**
   * Whether memory has all events after this id. False if some were dropped for space or never serialized.
   */
  holdsAllAfter(threadId: string, runId: string, after: number): boolean;
  read(options: ReadOptions): RunReader;
  /**
   * Reads all runs of a thread, including later ones. `after`: the reader's last `threadSeq`, 0 for all kept
   * events. The thread may not exist yet. A reader of the protocol wire causes runs that begin later, in any
   * process, to publish protocol events.
   */
  readThread(threadId: string, after: number, wire: Wire, how?: ReadThreadOptions): ThreadReader;
  /**
   * Keeps the events of runs that begin on a thread, before a reader exists. Returns a function that stops
   * this.
   */
  followThread(threadId: string, wire: Wire): () => void;
  /** Whether an attempt that begins now on this thread must publish protocol events. */
  wantsProtocol(threadId: string): boolean;
  /** Starts logging the events of a run that executes here, for readers elsewhere. */
  logFor(runId: string): void;
  /** Readers of unfinished runs are `lost`, so that their clients resume on another process. */
  close(): void;
}

/** Logs the events of an attempt, and signals readers elsewhere that they are stored or will be missing. */
const createLogging =
  ({ eventLog, signals, noteUnlogged, faults, logger }: HubOptions) =>
  (source: EventSource) =>
  async (events: RunEvent[]): Promise<void> => {
    faults.reached("between-checkpoint-and-event");
    const { threadId, runId } = source;
    try {
      await eventLog.append(source, events);
    } catch (error) {
      // After a lost lease the next attempt publishes events.
      if (!(error instanceof LeaseLostError)) {
        signals.send({ kind: "unlogged", threadId, runId });
        await noteUnlogged(source).catch((failure: unknown) => {
          logger.debug(
            { err: failure, run_id: runId },
            "that events are not logged is noted at the run's end",
          );
        });
      }
      throw error;
    }
    signals.send({ kind: "events", threadId, runId });
  };

/** Announces a reader where signals do not reach all processes. */
const createAnnouncing =
  ({ announceReader, logger }: HubOptions) =>
  (run: RunAddress): void => {
    announceReader?.(run).catch((error: unknown) => {
      logger.debug({ err: error, run_id: run.runId }, "that a run is read here could not be announced");
    });
  };

export const createHub = (options: HubOptions): Hub => {
  const { turns, signals, processId, logger } = options;
  const channels = createHeldChannels();
  const watchers = createRunWatchers();
  const followed = createFollowedThreads(signals, processId);
  let stopped = false;

  const logOf = createLogging(options);
  const announce = createAnnouncing(options);
  const logFor = (runId: string): void => {
    const channel = channels.get(runId);
    if (channel?.isUnlogged === true) {
      signals.send({ kind: "unlogged", threadId: channel.threadId, runId });
    } else channel?.startLogging(logOf(channel));
  };
  const unsubscribe = signals.subscribe(({ kind, threadId, runId }) => {
    if (kind === "events" || kind === "ended") watchers.notify(runId);
    if (kind === "unlogged") watchers.giveUp(runId);
    followed.received(kind, threadId, runId);
    if (kind === "watch") logFor(runId);
  });

  const read = createReading({ ...options, channels, watchers, isStopped: () => stopped });

  return {
    open({ graphId, resumable, logged, ...attempt }) {
      const { threadId, runId, turn } = attempt;
      channels.supersede(runId);
      const channel = new RunChannel({
        ...attempt,
        keep: attempt.keep || watchers.isWatched(runId) || followed.isFollowedHere(threadId),
        log: resumable ? logOf(attempt) : undefined,
      });
      if (!resumable && (logged || followed.isFollowedElsewhere(threadId)))
        channel.startLogging(logOf(attempt));
      channels.hold(channel);
      watchers.notify(runId);
      followed.wake(threadId, { threadId, runId, graphId, turn, attempt: attempt.attempt, resumable });
      return channel;
    },

    end: (channel) => channels.end(channel),
    abandon: (channel) => channels.abandon(channel),
    holds: (threadId, runId, userId) => channels.holds(threadId, runId, userId),

    holdsAllAfter(threadId, runId, after) {
      const channel = channels.get(runId);
      return channel?.threadId === threadId && after + 1 >= channel.firstKeptSeq;
    },

    read,
    logFor,
    followThread: (threadId, wire) => followed.follow(threadId, wire, () => undefined),
    wantsProtocol: (threadId) => followed.isFollowedOverProtocol(threadId),

    readThread(threadId, after, wire, { liveTurn, endedRunId } = {}) {
      const ended = endedRunId === undefined ? [] : [endedRunId];
      let current: string | undefined;
      let live = liveTurn;
      return readThread({
        threadId,
        after,
        turns,
        readRun(run: BegunRun, from) {
          current = run.runId;
          const isLive = run.turn === live;
          // In a recreated thread this turn belongs to another run.
          live = undefined;
          if (!run.resumable && channels.get(run.runId) === undefined) announce(run);
          return read({ ...run, after: isLive ? undefined : from, wire });
        },
        held: () => [...channels.runIdsOf(threadId), ...ended],
        follow: (wake) =>
          followed.follow(threadId, wire, (begun, gone) => {
            // News of another run may mean that the current one has ended.
            if (current !== undefined) watchers.notify(current);
            wake(begun, gone);
          }),
        isStopped: () => stopped,
        logger,
      });
    },

    close() {
      stopped = true;
      unsubscribe();
      channels.close();
      watchers.notifyAll();
      followed.close();
    },
  };
};
