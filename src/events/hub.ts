import type { Signals } from "../database/signals.ts";
import { unavailable } from "../lib/errors.ts";
import type { Faults } from "../lib/faults.ts";
import { createGate } from "../lib/gate.ts";
import type { Logger } from "../lib/logger.ts";
import type { EventLog, EventSource, RunAddress, RunEvent } from "./log.ts";
import { readLog } from "./readers/log-reader.ts";
import { RunChannel, type RunChannelOptions } from "./channel.ts";
import { readChannel, type RunReader } from "./readers/channel-reader.ts";

export interface ReadOptions {
  threadId: string;
  runId: string;
  /** Id of the last event the reader has; -1 for all that is kept; undefined for only what comes from now on. */
  after: number | undefined;
  resumable: boolean;
}

export interface HubOptions {
  eventLog: EventLog;
  signals: Signals;
  /** `ended` also of a run that is gone. */
  phaseOf: (run: RunAddress) => Promise<"pending" | "running" | "ended">;
  faults: Faults;
  logger: Logger;
}

/** Seconds that an ended run's events stay in memory for a client that was cut off just before the end. */
const LINGER_SECONDS = 30;
/**
 * Events of more than 256 KiB that are in memory for readers of the log, each for one of them until it has been sent:
 * 250 readers of one of 6 MB, who took nothing, ended the process. The others wait; small events never do.
 */
const LARGE_EVENTS_AT_ONCE = 8;
/** Longer than a reader who takes nothing keeps his place. */
const LARGE_EVENT_PATIENCE_MS = 90_000;
/** Bytes of ended runs' events that stay in memory at most, over all runs. */
const LINGERING_BYTES = 8 * 1024 * 1024;
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
  /** Has the events of a run that is executed here go to the log, for readers elsewhere; once is enough. */
  logFor(runId: string): void;
  /** Readers of runs that have not ended are `lost`, so that their clients resume on another process. */
  close(): void;
}

export const createHub = ({ eventLog, signals, phaseOf, faults, logger }: HubOptions): Hub => {
  const channels = new Map<string, RunChannel>();
  const lingering = new Map<RunChannel, NodeJS.Timeout>();
  /** Channels that were closed because their run ended, not because this process stops. */
  const ended = new WeakSet<RunChannel>();
  let stopped = false;
  let lingeringBytes = 0;
  /** Readers that wait for a signal about a run. */
  const waiting = new Map<string, Set<() => void>>();

  const forget = (channel: RunChannel): void => {
    const timer = lingering.get(channel);
    if (timer === undefined) return;
    clearTimeout(timer);
    lingering.delete(channel);
    lingeringBytes -= channel.keptBytes;
    if (channels.get(channel.runId) === channel) channels.delete(channel.runId);
  };

  const logOf = (source: EventSource) => async (events: RunEvent[]) => {
    faults.reached("between-checkpoint-and-event");
    await eventLog.append(source, events);
    signals.send({ kind: "events", threadId: source.threadId, runId: source.runId });
  };

  const largeEvents = createGate({
    places: LARGE_EVENTS_AT_ONCE,
    waitMs: LARGE_EVENT_PATIENCE_MS,
    full: () => unavailable("Too many large events are being sent at the moment."),
  });

  const notify = (runId: string): void => {
    for (const wake of waiting.get(runId) ?? []) wake();
  };
  const watch = (runId: string, wake: () => void): (() => void) => {
    const wakers = waiting.get(runId) ?? new Set();
    wakers.add(wake);
    waiting.set(runId, wakers);
    return () => {
      wakers.delete(wake);
      if (wakers.size === 0) waiting.delete(runId);
    };
  };
  const logFor = (runId: string): void => {
    const channel = channels.get(runId);
    channel?.startLogging(logOf(channel));
  };
  const unsubscribe = signals.subscribe(({ kind, runId }) => {
    if (kind === "events" || kind === "ended") notify(runId);
    if (kind === "watch") logFor(runId);
  });

  const channelReader = (channel: RunChannel, after: number, withOpening: boolean): RunReader =>
    readChannel({ channel, after, withOpening, hasEnded: () => ended.has(channel) });

  return {
    open({ resumable, logged, ...options }) {
      const before = channels.get(options.runId);
      if (before !== undefined) {
        before.close();
        forget(before);
      }
      const channel = new RunChannel({
        ...options,
        keep: options.keep || waiting.has(options.runId),
        log: resumable ? logOf(options) : undefined,
      });
      if (logged && !resumable) channel.startLogging(logOf(options));
      channels.set(options.runId, channel);
      notify(options.runId);
      return channel;
    },

    end(channel) {
      ended.add(channel);
      channel.close();
      if (channel.keptBytes === 0 || lingeringBytes + channel.keptBytes > LINGERING_BYTES) {
        if (channels.get(channel.runId) === channel) channels.delete(channel.runId);
        return;
      }
      lingeringBytes += channel.keptBytes;
      const timer = setTimeout(() => forget(channel), LINGER_SECONDS * 1_000);
      timer.unref();
      lingering.set(channel, timer);
    },

    abandon(channel) {
      channel.close();
      if (channels.get(channel.runId) === channel) channels.delete(channel.runId);
    },

    logFor,

    holds: (threadId, runId) => channels.get(runId)?.threadId === threadId,

    holdsAllAfter(threadId, runId, after) {
      const channel = channels.get(runId);
      return channel?.threadId === threadId && after + 1 >= channel.firstKeptSeq;
    },

    read(options) {
      const { runId, after, resumable } = options;
      const channel = channels.get(runId);
      // A resumable run's older events may have left memory; then the log has them all.
      const inMemory = (c: RunChannel, from: number | undefined) =>
        from === undefined || from + 1 >= c.firstKeptSeq || !resumable;
      if (channel !== undefined && inMemory(channel, after)) {
        const oldest = channel.firstKeptSeq - 1;
        return channelReader(
          channel,
          after === undefined
            ? channel.lastSeq
            : // Whoever saw an earlier attempt goes on with this one from its start.
              Math.max(after, after < 0 ? oldest : channel.firstSeq - 1),
          after === undefined || after < 0,
        );
      }
      logger.trace({ runId }, "reading a run from the event log");
      return readLog({
        eventLog,
        run: { threadId: options.threadId, runId },
        after,
        resumable,
        phaseOf,
        watch: (wake) => watch(runId, wake),
        askForEvents: () => signals.send({ kind: "watch", threadId: options.threadId, runId }),
        onLocal(from) {
          const opened = channels.get(runId);
          if (opened === undefined || opened === channel || !inMemory(opened, from)) return undefined;
          // From its first event: what it has dropped meanwhile must show as a loss, not as a gap.
          return channelReader(opened, Math.max(from ?? -1, opened.firstSeq - 1), false);
        },
        largeEvents,
        isStopped: () => stopped,
        logger,
      });
    },

    close() {
      stopped = true;
      unsubscribe();
      for (const channel of lingering.keys()) clearTimeout(lingering.get(channel));
      lingering.clear();
      for (const channel of channels.values()) channel.close();
      channels.clear();
      for (const runId of [...waiting.keys()]) notify(runId);
    },
  };
};
