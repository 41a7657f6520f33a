import type { Caller } from "../../../access/caller.ts";
import type { Room } from "../../../http/room.ts";
import type { Faults } from "../../../platform/domain/faults.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { Signals } from "../../../platform/database/signals.ts";
import type { RunChannel } from "../channel.ts";
import type { HeldChannels } from "../held-channels.ts";
import type { EventLog, EventSource, RunPhase } from "../log.ts";
import type { RunSelector } from "../../queue/attempts.ts";
import type { RunWatchers } from "../run-watchers.ts";
import type { Turns } from "../turns.ts";
import type { Wire } from "../wires.ts";
import { readChannel, type RunReader } from "./channel-reader.ts";
import { readLog } from "./log-reader.ts";

export interface ReadOptions extends RunSelector {
  /** Id of the reader's last event; -1: all kept events; undefined: `metadata` and new events. */
  after: number | undefined;
  resumable: boolean;
  /**
   * The reader came before the run's end, so unreadable events count as `lost`. Later readers get the
   * remaining events.
   */
  cameBeforeEnd?: boolean;
  wire?: Wire;
  caller?: Caller | undefined;
}

export interface HubOptions {
  eventLog: EventLog;
  readRoom: Room;
  turns: Turns;
  signals: Signals;
  processId: string;
  phaseOf: (run: RunSelector) => Promise<RunPhase>;
  /** For readers that signals do not reach. */
  noteUnlogged: (source: EventSource) => Promise<void>;
  faults: Faults;
  logger: Logger;
}

/** The log may have older events of a resumable run. Other runs are read from memory even if events are missing. */
const readsMemory = (channel: RunChannel, after: number | undefined, resumable: boolean): boolean =>
  after === undefined || after + 1 >= channel.firstKeptSeq || !resumable;

/** Reads a run from memory if all missing events are there, else from the log until the run begins here. */
export const createReading = (
  { eventLog, readRoom, signals, phaseOf, logger }: HubOptions,
  channels: HeldChannels,
  watchers: RunWatchers,
  isStopped: () => boolean,
) => {
  const channelReader = (channel: RunChannel, after: number, wire: Wire, withOpening: boolean): RunReader =>
    readChannel({ channel, after, wire, withOpening, hasEnded: () => channels.hasEnded(channel) });

  return (options: ReadOptions): RunReader => {
    const { threadId, runId, after, resumable, cameBeforeEnd = false, wire = "first", caller } = options;
    const channel = channels.get(runId);
    if (channel !== undefined && readsMemory(channel, after, resumable)) {
      const oldest = channel.firstKeptSeq - 1;
      const from =
        after === undefined
          ? channel.lastSeq
          : // A reader of an earlier attempt continues with the start of this one.
            Math.max(after, after < 0 ? oldest : channel.firstSeq - 1);
      return channelReader(channel, from, wire, after === undefined || after < 0);
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
        if (opened === undefined || opened === channel || !readsMemory(opened, from, resumable))
          return undefined;
        // From its first event, so that dropped events show as a loss, not as a gap.
        return channelReader(opened, Math.max(from ?? -1, opened.firstSeq - 1), wire, false);
      },
      readRoom,
      caller,
      isStopped,
      logger,
    });
  };
};
