import type { Signals } from "../database/signals.ts";
import { LeaseLostError, unavailable } from "../domain/errors.ts";
import type { Faults } from "../domain/faults.ts";
import { createGate } from "../lib/gate.ts";
import type { Logger } from "../lib/logger.ts";
import { createFollowedThreads } from "./followed-threads.ts";
import { createHeldChannels } from "./held-channels.ts";
import type { EventLog, EventSource, RunAddress, RunEvent, RunPhase } from "./log.ts";
import { readLog } from "./readers/log-reader.ts";
import { RunChannel, type RunChannelOptions } from "./channel.ts";
import { readChannel, type RunReader } from "./readers/channel-reader.ts";
import { readThread, type ThreadReader } from "./readers/thread-reader.ts";
import { createRunWatchers } from "./run-watchers.ts";
import type { BegunRun, Turns } from "./turns.ts";

export interface ReadOptions {
  threadId: string;
  runId: string;
  /** Id of the last event the reader has; -1 for all that is kept; undefined for only what comes from now on. */
  after: number | undefined;
  resumable: boolean;
  /** The reader came before the run's end: what of it can't be shown is `lost`. Who came later sees what is left. */
  cameBeforeEnd?: boolean;
}

export interface HubOptions {
  eventLog: EventLog;
  turns: Turns;
  signals: Signals;
  processId: string;
  phaseOf: (run: RunAddress) => Promise<RunPhase>;
  /** Notes in the database that the log refuses the events of an attempt, for readers whom no signal reaches. */
  noteUnlogged: (source: EventSource) => Promise<void>;
  faults: Faults;
  logger: Logger;
}

/**
 * Events of more than 256 KiB that are in memory for readers of the log, each for one of them until it has been sent:
 * 250 readers of one of 6 MB, who took nothing, ended the process. The others wait; small events never do.
 */
const LARGE_EVENTS_AT_ONCE = 8;
/** Longer than a reader who takes nothing keeps his place. */
const LARGE_EVENT_PATIENCE_MS = 90_000;
/**
 * The fan-out of this process: events of runs that it executes go from memory to any number of readers here;
 * readers of runs that other processes execute are served from the event log.
 */
export interface Hub {
  /** Called by the executor when an attempt starts. */
  open(options: Omit<RunChannelOptions, "log"> & { resumable: boolean; logged: boolean }): RunChannel;
  /** Called by the executor after the run's terminal status is committed. */
  end(channel: RunChannel): void;
  /** Called by the executor when the run goes on elsewhere: its readers here are `lost` and resume there. */
  abandon(channel: RunChannel): void;
  /** Whether this process has the run's events in memory, also for a while after its end. */
  holds(threadId: string, runId: string): boolean;
  /**
   * Whether it has all of them after the event with this id, and will have those that are to come: none have been let go
   * to make room, or were not made because nobody wanted them.
   */
  holdsAllAfter(threadId: string, runId: string, after: number): boolean;
  read(options: ReadOptions): RunReader;
  /**
   * Reads a thread over all its runs, those to come included. `after`: the `threadSeq` of the last event that the reader
   * has, 0 for all that is kept. The thread may not exist yet.
   */
  readThread(threadId: string, after: number): ThreadReader;
  /** Has the events of a run that is executed here go to the log, for readers elsewhere; once is enough. */
  logFor(runId: string): void;
  /** Readers of runs that have not ended are `lost`, so that their clients resume on another process. */
  close(): void;
}

export const createHub = (options: HubOptions): Hub => {
  const { eventLog, turns, signals, phaseOf, noteUnlogged, processId, faults, logger } = options;
  const channels = createHeldChannels();
  const watchers = createRunWatchers();
  const followed = createFollowedThreads(signals, processId);
  let stopped = false;

  const logOf = (source: EventSource) => async (events: RunEvent[]) => {
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

  const largeEvents = createGate({
    places: LARGE_EVENTS_AT_ONCE,
    waitMs: LARGE_EVENT_PATIENCE_MS,
    full: () => unavailable("Too many large events are being sent at the moment."),
  });

  const logFor = (runId: string): void => {
    const channel = channels.get(runId);
    if (channel?.isUnlogged === true) {
      signals.send({ kind: "unlogged", threadId: channel.threadId, runId });
    } else channel?.startLogging(logOf(channel));
  };
  const unsubscribe = signals.subscribe(({ kind, threadId, runId }) => {
    if (kind === "events" || kind === "ended") watchers.notify(runId);
    if (kind === "unlogged") watchers.giveUp(runId);
    if (kind === "follow") followed.heard(threadId, runId);
    if (kind === "watch") logFor(runId);
  });

  const channelReader = (channel: RunChannel, after: number, withOpening: boolean): RunReader =>
    readChannel({ channel, after, withOpening, hasEnded: () => channels.hasEnded(channel) });

  /** A resumable run's older events may have left memory; then the log has them all. */
  const isInMemory = (channel: RunChannel, after: number | undefined, resumable: boolean): boolean =>
    after === undefined || after + 1 >= channel.firstKeptSeq || !resumable;

  const read = ({ threadId, runId, after, resumable, cameBeforeEnd = false }: ReadOptions): RunReader => {
    const channel = channels.get(runId);
    if (channel !== undefined && isInMemory(channel, after, resumable)) {
      const oldest = channel.firstKeptSeq - 1;
      const from =
        after === undefined
          ? channel.lastSeq
          : // Whoever saw an earlier attempt goes on with this one from its start.
            Math.max(after, after < 0 ? oldest : channel.firstSeq - 1);
      return channelReader(channel, from, after === undefined || after < 0);
    }
    logger.trace({ runId }, "reading a run from the event log");
    return readLog({
      eventLog,
      run: { threadId, runId },
      after,
      resumable,
      cameBeforeEnd,
      phaseOf,
      watch: (wake) => watchers.watch(runId, wake),
      isUnlogged: () => watchers.isHopeless(runId),
      askForEvents: () => signals.send({ kind: "watch", threadId, runId }),
      onLocal(from) {
        const opened = channels.get(runId);
        if (opened === undefined || opened === channel || !isInMemory(opened, from, resumable))
          return undefined;
        // From its first event: what it has dropped meanwhile must show as a loss, not as a gap.
        return channelReader(opened, Math.max(from ?? -1, opened.firstSeq - 1), false);
      },
      largeEvents,
      isStopped: () => stopped,
      logger,
    });
  };

  return {
    open({ resumable, logged, ...attempt }) {
      const { threadId, runId } = attempt;
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
      followed.wake(threadId);
      return channel;
    },

    end: (channel) => channels.end(channel),
    abandon: (channel) => channels.abandon(channel),
    holds: (threadId, runId) => channels.get(runId)?.threadId === threadId,

    holdsAllAfter(threadId, runId, after) {
      const channel = channels.get(runId);
      return channel?.threadId === threadId && after + 1 >= channel.firstKeptSeq;
    },

    read,
    logFor,

    readThread(threadId, after) {
      let current: string | undefined;
      return readThread({
        threadId,
        after,
        turns,
        readRun(run: BegunRun, from) {
          current = run.runId;
          return read({ ...run, after: from });
        },
        held: () => channels.runIdsOf(threadId),
        follow: (wake) =>
          followed.follow(threadId, () => {
            // News of another run: the one that is being read may have ended.
            if (current !== undefined) watchers.notify(current);
            wake();
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
