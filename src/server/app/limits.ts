import type { Config } from "../../platform/config/config.ts";
import type { Encryption } from "../../platform/database/database.ts";
import {
  createCallerLimits,
  createRefusals,
  type CallerLimits,
  type Refusals,
} from "../../http/limits/caller-limits.ts";
import { createFailedLogins, type FailedLogins } from "../../http/limits/failed-logins.ts";
import type { ConnectionLimits } from "../../http/open-answers.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { countedName, userDigest } from "../../engine/queue/counted-as.ts";
import type { PendingLimitOptions } from "../../api/runs/creation/pending-limits.ts";

export const callerLimitsOf = (config: Config, encryption: Encryption, logger: Logger): CallerLimits =>
  createCallerLimits({
    perMinute: {
      reads: config.readsPerMinute,
      searches: config.searchesPerMinute,
      writes: config.writesPerMinute,
      runs: config.runsPerMinute,
      streams: config.streamsPerMinute,
    },
    keyFactor: config.keyFactor,
    // Behind a proxy all callers have its address, unless the proxy is trusted and forwards theirs.
    countsAddresses: !config.unsafeNoAuth || config.trustedProxies.length > 0,
    streamsPerCaller: config.streamsPerCaller,
    streamsAtMost: config.streamsAtMost,
    countedName: (name) => countedName(encryption, name),
    // If the database encrypts users' names, the log must not show them.
    refusals: createRefusals({
      logger,
      shownUser: encryption.isOn ? (name) => userDigest(encryption, name) : undefined,
    }),
  });

export const failedLoginsOf = (config: Config, refusals: Refusals): FailedLogins =>
  createFailedLogins({
    perMinute: config.failedLoginsPerMinute,
    refusals,
    countsAddresses: !config.unsafeNoAuth || config.trustedProxies.length > 0,
  });

export const pendingLimitsOf = (config: Config, refusals: Refusals): PendingLimitOptions => ({
  onRefused: (caller) => refusals.note("pending_runs", caller ?? undefined),
  perThread: config.pendingRunsPerThread,
  perCaller: config.pendingRunsPerCaller,
  keyFactor: config.keyFactor,
});

export const connectionLimitsOf = (config: Config): ConnectionLimits => ({
  atMost: config.connectionsAtMost,
  headersMs: config.headersTimeoutSeconds * 1_000,
  requestMs: config.requestTimeoutSeconds * 1_000,
  keepAliveMs: config.keepAliveSeconds * 1_000,
});
