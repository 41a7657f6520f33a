import type { Authorize } from "../../access/authorize.ts";
import type { Hub } from "../../engine/events/hub.ts";
import type { EventLog } from "../../engine/events/log.ts";
import type { TraceStorage } from "../../engine/traces/storage.ts";
import type { RunEnds } from "../../engine/queue/ending.ts";
import { createAnnouncements } from "./announcements.ts";
import { createCancellation, createCancellationService } from "./cancellation.ts";
import { createBehindOthersStore } from "./creation/behind-others.ts";
import { createRunCreation, type RunCreationParts } from "./creation/creation.ts";
import { createPendingLimits, type PendingLimitOptions } from "./creation/pending-limits.ts";
import { createScheduledRuns, type ScheduledRunParts } from "./creation/scheduled.ts";
import { createCreationService } from "./creation/service.ts";
import { createRunResults, type RunResultsParts } from "./joining/results.ts";
import { createJoiningService } from "./joining/service.ts";
import type { RunSearcher } from "./search.ts";
import { createRecordService } from "./records.ts";
import { createSummaryService } from "./summary.ts";
import { createTraceService } from "./traces/service.ts";

export interface RunServiceParts
  extends Omit<RunCreationParts, "announcements" | "behindOthers" | "limits">, RunResultsParts {
  authorize: Authorize;
  searcher: RunSearcher;
  ends: RunEnds;
  hub: Hub;
  eventLog: EventLog;
  traces: TraceStorage;
  /** See `CallerLimits`. */
  takesRun: ScheduledRunParts["takesRun"];
  pendingLimits: PendingLimitOptions;
}

/** A run is visible with its thread; a hidden run is treated as missing. */
export const createRunService = (parts: RunServiceParts) => {
  const announcements = createAnnouncements(parts.worker, parts.signals, parts.endings);
  const limits = createPendingLimits(parts.pendingLimits);
  const behindOthers = createBehindOthersStore(parts.ends, limits);
  const creation = createRunCreation({ ...parts, announcements, behindOthers, limits });
  const cancellation = createCancellation({ ...parts, announcements });
  const results = createRunResults(parts);
  return {
    creation: createCreationService(parts.authorize, parts.database, creation, parts.processId),
    storeScheduled: createScheduledRuns({ ...parts, announcements, behindOthers, limits }),
    records: createRecordService({ ...parts, cancellation }),
    summary: createSummaryService(parts.authorize, parts.database),
    traces: createTraceService(parts),
    joining: createJoiningService({ ...parts, results }),
    cancellation: createCancellationService(
      parts.authorize,
      parts.everyThread,
      cancellation,
      results.waitForEnd,
    ),
  };
};

export type RunService = ReturnType<typeof createRunService>;
