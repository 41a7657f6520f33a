import { LeaseLostError } from "../../platform/domain/errors.ts";
import { createFollowedThreads } from "./followed-threads.ts";
import { createHeldChannels } from "./held-channels.ts";
import type { EventSource, LogEvents } from "./log.ts";
import { RunChannel, type RunChannelOptions } from "./channel.ts";
import { createReading, type HubOptions, type ReadOptions } from "./readers/run-reader.ts";
import { readThread, type ThreadReader } from "./readers/thread-reader.ts";
import { createRunWatchers } from "./run-watchers.ts";
import type { BegunRun } from "./turns.ts";
import type { Wire } from "./wires.ts";

export interface ThreadReadOptions extends Pick<ReadOptions, "caller"> {
  liveTurn?: number | undefined;
  endedRunId?: string | undefined;
}

/** Signals readers in other processes that events are stored, or will be missing. */
const createLogging =
  ({ eventLog, signals, noteUnlogged, faults, logger }: HubOptions) =>
  (source: EventSource): LogEvents =>
  async (events, isWanted) => {
    faults.reached("between-checkpoint-and-event");
    const { threadId, runId } = source;
    try {
      await eventLog.append(source, events, isWanted);
    } catch (error) {
      // After a lost lease the next attempt publishes events.
      if (isWanted() && !(error instanceof LeaseLostError)) {
        signals.send({ kind: "unlogged", threadId, runId });
        await noteUnlogged(source).catch((failure: unknown) => {
          logger.debug(
            { err: failure, run_id: runId },
            "unlogged events could not be recorded; the end of the run records them",
          );
        });
      }
      throw error;
    }
    signals.send({ kind: "events", threadId, runId });
  };

export const createHub = (options: HubOptions) => {
  const { turns, signals, processId, logger } = options;
  const channels = createHeldChannels();
  const watchers = createRunWatchers();
  const followed = createFollowedThreads(signals, processId);
  let stopped = false;

  const logOf = createLogging(options);
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

  const read = createReading(options, channels, watchers, () => stopped);

  return {
    open({
      graphId,
      resumable,
      logged,
      ...attempt
    }: Omit<RunChannelOptions, "log"> &
      Pick<BegunRun, "graphId" | "resumable"> & { logged: boolean }): RunChannel {
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

    /** Call after the run's end is committed. */
    end: channels.end,
    /** For a run that continues elsewhere: its readers here are `lost` and resume there. */
    abandon: channels.abandon,
    /** True also for a while after the end. With `userId`: only for runs of this user. */
    holds: channels.holds,

    /** False if events were dropped for space or never serialized. */
    holdsAllAfter(threadId: string, runId: string, after: number): boolean {
      const channel = channels.get(runId);
      return channel?.threadId === threadId && after + 1 >= channel.firstKeptSeq;
    },

    read,
    logFor,
    followThread: (threadId: string, wire: Wire, onBegun?: (run: BegunRun) => void): (() => void) =>
      followed.follow(threadId, wire, (begun) => {
        if (begun !== undefined) onBegun?.(begun);
      }),
    wantsProtocol: (threadId: string): boolean => followed.isFollowedOverProtocol(threadId),

    /**
     * Reads all runs of a thread, including later ones; the thread may not exist yet. With the protocol wire,
     * later runs in any process publish protocol events. `after`: the last `threadSeq`; 0: all kept events.
     * `liveTurn`: of this attempt, reads only `metadata` and new events. `endedRunId`: sends this run's end
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
        turns,
        readRun(run: BegunRun, from) {
          current = run.runId;
          const isLive = run.turn === live;
          // In a recreated thread this turn belongs to another run.
          live = undefined;
          return read({ ...run, after: isLive ? undefined : from, wire, caller });
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

    /** Readers of unfinished runs are `lost`, so that their clients resume on another process. */
    close(): void {
      stopped = true;
      unsubscribe();
      channels.close();
      watchers.notifyAll();
      followed.close();
    },
  };
};

export type Hub = ReturnType<typeof createHub>;
