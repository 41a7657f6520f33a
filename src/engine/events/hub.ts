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
  /** Notes in the database that the log refuses the events of an attempt, for readers whom no signal reaches. */
  noteUnlogged: (source: EventSource) => Promise<void>;
  /**
   * Notes in the database that a run is read here, where no signal says so: its events are logged then, and what is not logged
   * by its end is known to be missing. Left out where signals reach all processes.
   */
  announceReader?: (run: RunAddress) => Promise<unknown>;
  faults: Faults;
  logger: Logger;
}

export interface ReadThreadOptions {
  /** Of the attempt with this turn only the events from now on are sent, behind its `metadata`. */
  liveTurn?: number | undefined;
  /** The end of this run is sent in its turn, also if none of its events can be read. */
  endedRunId?: string | undefined;
}

/**
 * The fan-out of this process: events of runs that it executes go from memory to any number of readers here;
 * readers of runs that other processes execute are served from the event log.
 */
export interface Hub {
  /** Called by the executor when an attempt starts. */
  open(
    options: Omit<RunChannelOptions, "log"> & { graphId: string; resumable: boolean; logged: boolean },
  ): RunChannel;
  /** Called by the executor after the run's terminal status is committed. */
  end(channel: RunChannel): void;
  /** Called by the executor when the run goes on elsewhere: its readers here are `lost` and resume there. */
  abandon(channel: RunChannel): void;
  /** Whether this process has the run's events in memory, also for a while after its end. `userId`: and it is that user's. */
  holds(threadId: string, runId: string, userId?: string): boolean;
  /**
   * Whether it has all of them after the event with this id, and will have those that are to come: none have been let go
   * to make room, or were not made because nobody wanted them.
   */
  holdsAllAfter(threadId: string, runId: string, after: number): boolean;
  read(options: ReadOptions): RunReader;
  /**
   * Reads a thread over all its runs, those to come included. `after`: the `threadSeq` of the last event that the reader
   * has, 0 for all that is kept. The thread may not exist yet. Who reads over the protocol wire causes the runs that begin
   * from now on, here or in other processes, to make its events.
   */
  readThread(threadId: string, after: number, wire: Wire, how?: ReadThreadOptions): ThreadReader;
  /** Has the runs that begin on a thread kept, and told over this wire, before somebody can read it. Returns the end of that. */
  followThread(threadId: string, wire: Wire): () => void;
  /** Whether an attempt that begins now on this thread has to make the events of the protocol wire for somebody who reads it. */
  wantsProtocol(threadId: string): boolean;
  /** Has the events of a run that is executed here go to the log, for readers elsewhere; once is enough. */
  logFor(runId: string): void;
  /** Readers of runs that have not ended are `lost`, so that their clients resume on another process. */
  close(): void;
}

/** Writes the events of an attempt to the log, and tells those who wait for them, or that they won't come. */
const createLogging =
  ({ eventLog, signals, noteUnlogged, faults, logger }: HubOptions) =>
  (source: EventSource) =>
  async (events: RunEvent[]): Promise<void> => {
    faults.reached("between-checkpoint-and-event");
    const { threadId, runId } = source;
    try {
      await eventLog.append(source, events);
    } catch (error) {
      // Of an attempt that lost the run the next one tells more.
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

/** Tells those who execute runs that one is read here, where no signal does. */
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
          // Of a thread that is made anew another run has this turn.
          live = undefined;
          if (!run.resumable && channels.get(run.runId) === undefined) announce(run);
          return read({ ...run, after: isLive ? undefined : from, wire });
        },
        held: () => [...channels.runIdsOf(threadId), ...ended],
        follow: (wake) =>
          followed.follow(threadId, wire, (begun, gone) => {
            // News of another run: the one that is being read may have ended.
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
