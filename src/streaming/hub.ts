import type { Signals } from "../database/signals.ts";
import type { Faults } from "../lib/faults.ts";
import type { Logger } from "../lib/logger.ts";
import type { EventLog, RunEvent } from "./event-log.ts";
import { RunChannel, type RunChannelOptions } from "./run-channel.ts";

/** A reader's view of one run. */
export interface RunReader {
  /**
   * The next events, at least one; `"ended"` after the last one; `"lost"` if the reader fell so far behind that
   * events it has not seen are gone: its connection is to be dropped, so that the client resumes or gives up.
   */
  next(): Promise<RunEvent[] | "ended" | "lost">;
  /** Ends the reading; a pending `next` answers `"ended"`. */
  close(): void;
}

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
  phaseOf: (runId: string) => Promise<"pending" | "running" | "ended">;
  faults: Faults;
  logger: Logger;
}

/** Seconds that an ended run's events stay in memory for a client that was cut off just before the end. */
const LINGER_SECONDS = 30;
/** Bytes of ended runs' events that stay in memory at most, over all runs. */
const LINGERING_BYTES = 8 * 1024 * 1024;
/** A reader of the event log looks by itself this often, should a signal have been lost. */
const POLL_MS = 500;
/** Events that a reader of the log takes at a time. */
const LOG_PAGE = 500;

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
  read(options: ReadOptions): RunReader;
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

  const logOf =
    (source: { threadId: string; runId: string; attempt: number }) => async (events: RunEvent[]) => {
      faults.reached("between-checkpoint-and-event");
      await eventLog.append(source, events);
      signals.send("events", source.runId);
    };

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
  const unsubscribe = signals.subscribe(({ kind, runId }) => {
    if (kind === "events" || kind === "ended") notify(runId);
    if (kind === "watch") {
      const channel = channels.get(runId);
      channel?.startLogging(logOf(channel));
    }
  });

  const readChannel = (channel: RunChannel, from: number, isNew = false): RunReader => {
    let after = from;
    let done = false;
    // Every stream begins with `metadata`, also one that is joined in the middle.
    let opening =
      isNew && channel.opening !== undefined && channel.opening.seq <= from ? channel.opening : undefined;
    let wake: (() => void) | undefined;
    const detach = channel.attach(() => wake?.());
    return {
      async next() {
        for (;;) {
          if (done) return "ended";
          if (opening !== undefined) {
            const first = [opening];
            opening = undefined;
            return first;
          }
          const events = channel.read(after);
          if (events === undefined) return "lost";
          const last = events.at(-1);
          if (last !== undefined) {
            after = last.seq;
            return events;
          }
          if (ended.has(channel)) return "ended";
          if (channel.closed) return "lost";
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          wake = undefined;
        }
      },
      close() {
        done = true;
        detach();
        wake?.();
      },
    };
  };

  const readLog = (
    { runId, after: from, resumable }: ReadOptions,
    onLocal: () => RunReader | undefined,
  ): RunReader => {
    let after = from;
    let heard = resumable;
    let done = false;
    let wake: (() => void) | undefined;
    let local: RunReader | undefined;
    const unwatch = watch(runId, () => wake?.());
    return {
      async next() {
        for (;;) {
          if (done) return "ended";
          if (stopped) return "lost";
          // The run may have been pending when the reader came, and be executed right here.
          local ??= onLocal();
          if (local !== undefined) return await local.next();
          const arrival = new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, POLL_MS);
            wake = () => {
              clearTimeout(timer);
              resolve();
            };
          });
          // Asked before the events are read: an end that is seen has all its events in the log.
          const phase = await phaseOf(runId);
          if (after === undefined) {
            after = await eventLog.lastSeq(runId);
            const opening = after < 0 ? undefined : await eventLog.opening(runId);
            if (opening !== undefined) {
              wake?.();
              return [opening];
            }
          }
          const events = await eventLog.read(runId, after, LOG_PAGE);
          const last = events.at(-1);
          if (last !== undefined) {
            wake?.();
            heard = true;
            after = last.seq;
            return events;
          }
          if (phase === "ended") {
            wake?.();
            return "ended";
          }
          // Again and again until something comes: a lost signal would otherwise leave the reader with nothing.
          // Not while it is pending: who then executes it may be this process, and would log it for nobody.
          if (!heard && phase === "running") signals.send("watch", runId);
          await arrival;
          wake = undefined;
        }
      },
      close() {
        done = true;
        unwatch();
        local?.close();
        wake?.();
      },
    };
  };

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

    holds: (threadId, runId) => channels.get(runId)?.threadId === threadId,

    read(options) {
      const channel = channels.get(options.runId);
      // A resumable run's older events may have left memory; then the log has them all.
      const inMemory = (c: RunChannel) =>
        options.after === undefined || options.after + 1 >= c.firstKeptSeq || !options.resumable;
      if (channel !== undefined && inMemory(channel)) {
        const oldest = channel.firstKeptSeq - 1;
        return readChannel(
          channel,
          options.after === undefined
            ? channel.lastSeq
            : // Whoever saw an earlier attempt goes on with this one from its start.
              Math.max(options.after, options.after < 0 ? oldest : channel.firstSeq - 1),
          options.after === undefined || options.after < 0,
        );
      }
      logger.trace({ runId: options.runId }, "reading a run from the event log");
      return readLog(options, () => {
        const opened = channels.get(options.runId);
        if (opened === undefined || opened === channel || !inMemory(opened)) return undefined;
        return readChannel(opened, Math.max(options.after ?? -1, opened.firstKeptSeq - 1));
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
