import type { Config } from "../config/config.ts";
import { createCallerLimits, type CallerLimits } from "../http/limits/caller-limits.ts";
import type { ConnectionLimits } from "../http/limits/connections.ts";

/** What one caller may ask of this process, as the configuration says. */
export const callerLimitsOf = (config: Config): CallerLimits =>
  createCallerLimits({
    perMinute: {
      reads: config.readsPerMinute,
      searches: config.searchesPerMinute,
      writes: config.writesPerMinute,
      runs: config.runsPerMinute,
      streams: config.streamsPerMinute,
    },
    keyFactor: config.keyFactor,
    // What checks access in front has one address for all; who names it knows theirs from what it says.
    countsAddresses: !config.unsafeNoAuth || config.trustedProxies.length > 0,
    streamsPerCaller: config.streamsPerCaller,
    streamsAtMost: config.streamsAtMost,
  });

export const connectionLimitsOf = (config: Config): ConnectionLimits => ({
  atMost: config.connectionsAtMost,
  headersMs: config.headersTimeoutSeconds * 1_000,
  requestMs: config.requestTimeoutSeconds * 1_000,
  keepAliveMs: config.keepAliveSeconds * 1_000,
});
