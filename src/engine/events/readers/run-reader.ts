import { unavailable } from "../../../platform/domain/errors.ts";
import { createGate } from "../../../platform/lib/gate.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { Signals } from "../../../platform/database/signals.ts";
import type { RunChannel } from "../channel.ts";
import type { HeldChannels } from "../held-channels.ts";
import type { EventLog, RunAddress, RunPhase } from "../log.ts";
import type { RunWatchers } from "../run-watchers.ts";
import type { Wire } from "../wires.ts";
import { readChannel, type RunReader } from "./channel-reader.ts";
import { readLog } from "./log-reader.ts";

export interface ReadOptions {
  threadId: string;
  runId: string;
  /** Id of the last event the reader has; -1 for all that is kept; undefined for only what comes from now on. */
  after: number | undefined;
  resumable: boolean;
  /** The reader came before the run's end: what of it can't be shown is `lost`. Who came later sees what is left. */
  cameBeforeEnd?: boolean;
  /** The first one if left out. */
  wire?: Wire;
}

export interface ReadingParts {
  channels: HeldChannels;
  watchers: RunWatchers;
  eventLog: EventLog;
  signals: Signals;
  phaseOf: (run: RunAddress) => Promise<RunPhase>;
  isStopped(): boolean;
  logger: Logger;
}

/**
 * Events of more than 256 KiB that are in memory for readers of the log, each for one of them until it has been sent:
 * 250 readers of one of 6 MB, who took nothing, ended the process. The others wait; small events never do.
 */
const LARGE_EVENTS_AT_ONCE = 8;
/** Longer than a reader who takes nothing keeps his place. */
const LARGE_EVENT_PATIENCE_MS = 90_000;
/** A resumable run's older events may have left memory; then the log has them all. */
const isInMemory = (channel: RunChannel, after: number | undefined, resumable: boolean): boolean =>
  after === undefined || after + 1 >= channel.firstKeptSeq || !resumable;

/** Reads runs: from memory where it has all that the reader lacks, else from the log, until the run begins here. */
export const createReading = (parts: ReadingParts) => {
  const { channels, watchers, eventLog, signals, phaseOf, isStopped, logger } = parts;
  const largeEvents = createGate({
    places: LARGE_EVENTS_AT_ONCE,
    waitMs: LARGE_EVENT_PATIENCE_MS,
    full: () => unavailable("Too many large events are being sent at the moment."),
  });

  const channelReader = (channel: RunChannel, after: number, wire: Wire, withOpening: boolean): RunReader =>
    readChannel({ channel, after, wire, withOpening, hasEnded: () => channels.hasEnded(channel) });

  return (options: ReadOptions): RunReader => {
    const { threadId, runId, after, resumable, cameBeforeEnd = false, wire = "first" } = options;
    const channel = channels.get(runId);
    if (channel !== undefined && isInMemory(channel, after, resumable)) {
      const oldest = channel.firstKeptSeq - 1;
      const from =
        after === undefined
          ? channel.lastSeq
          : // Whoever saw an earlier attempt goes on with this one from its start.
            Math.max(after, after < 0 ? oldest : channel.firstSeq - 1);
      return channelReader(channel, from, wire, after === undefined || after < 0);
    }
    logger.trace({ runId }, "reading a run from the event log");
    /**
     * Held from the moment at which the run begins here: its channel may be dropped for want of room before the database
     * has answered this reader. 1 of 50 streams of short runs had a clean end without an event.
     */
    let begun: RunChannel | undefined;
    return readLog({
      eventLog,
      run: { threadId, runId },
      after,
      wire,
      resumable,
      cameBeforeEnd,
      phaseOf,
      watch: (wake) =>
        watchers.watch(runId, () => {
          begun = channels.get(runId) ?? begun;
          wake();
        }),
      isUnlogged: () => watchers.isHopeless(runId),
      askForEvents: () => signals.send({ kind: "watch", threadId, runId }),
      onLocal(from) {
        const opened = channels.get(runId) ?? begun;
        if (opened === undefined || opened === channel || !isInMemory(opened, from, resumable))
          return undefined;
        // From its first event: what it has dropped meanwhile must show as a loss, not as a gap.
        return channelReader(opened, Math.max(from ?? -1, opened.firstSeq - 1), wire, false);
      },
      largeEvents,
      isStopped,
      logger,
    });
  };
};
