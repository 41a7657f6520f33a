import type { Database, Queryable } from "../../platform/database/database.ts";
import { retryPassing } from "../../platform/database/passing-faults.ts";
import { sqlState } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { AttemptSelector } from "../queue/attempts.ts";
import type { Queue } from "../queue/queue.ts";
import type { HeartbeatRow } from "../queue/sql/renew.ts";
import type { Execution } from "../attempt/execution.ts";

export interface HeartbeatOptions {
  queue: Queue;
  connectionString: string;
  /** The common pool, for renewals that fail on the heartbeat's own connection. */
  shared: Pick<Database, "query">;
  schema: string;
  preparedStatements: boolean;
  leaseSeconds: number;
  heartbeatSeconds: number;
  /** How long a blocked event loop keeps its leases; 0: no thread, the event loop alone renews. */
  blockedLoopSeconds: number;
  /** Not while a debugger is attached. */
  endsBlockedProcess?: boolean | undefined;
  /** Called at each renewal of a run that another process reads, in case the signal was lost. */
  onReadElsewhere(runId: string): void;
  threadEntry?: URL;
  logger: Logger;
}

/** `own`: a connection only for renewals. */
export const createLoopRenewals = (
  { queue, shared, leaseSeconds, onReadElsewhere, logger }: HeartbeatOptions,
  own: Queryable,
  held: ReadonlyMap<string, Execution>,
  { heartbeatMs, timeoutMs }: { heartbeatMs: number; timeoutMs: number },
) => {
  let closed = false;

  const react = (asked: readonly AttemptSelector[], rows: readonly HeartbeatRow[]): void => {
    const kept = new Map(rows.map((row) => [row.run_id, row]));
    for (const { runId, attempt } of asked) {
      const execution = held.get(runId);
      // The run may be here again in a later attempt.
      if (execution?.attempt !== attempt) continue;
      const row = kept.get(runId);
      if (row === undefined) execution.stop({ kind: "lease-lost" });
      else if (row.cancel_action !== null) execution.stop({ kind: "cancel", action: row.cancel_action });
      if (row?.read_elsewhere === true) onReadElsewhere(runId);
    }
  };

  let failureLoggedAt = -Infinity;
  /** Warns once per lease: while the database is unreachable each retry fails, too. */
  const logFailed = (what: object, message: string): void => {
    const now = performance.now();
    const level = now - failureLoggedAt < leaseSeconds * 1_000 ? "debug" : "warn";
    if (level === "warn") failureLoggedAt = now;
    logger[level](what, message);
  };

  const renewOver = async (connection: Queryable): Promise<void> => {
    const asked = [...held.values()].map(({ threadId, runId, attempt }) => ({ threadId, runId, attempt }));
    if (asked.length > 0) react(asked, await queue.renew(asked, leaseSeconds, connection));
  };
  const boundedShared: Queryable = {
    encryption: own.encryption,
    query: (text, values) => shared.query(text, values, { answerMs: timeoutMs }),
  };

  let standingIn: Promise<void> | undefined;
  const standIn = (failure: { reason: string; code: string | undefined }): void => {
    standingIn ??= retryPassing(() => renewOver(boundedShared), {
      forMs: heartbeatMs,
      isWanted: () => !closed,
    })
      .then(() =>
        logFailed(failure, "the connection for leases failed; the leases were renewed over the pool"),
      )
      .catch((error: unknown) => logFailed({ err: error, ...failure }, "leases could not be renewed"))
      .finally(() => {
        standingIn = undefined;
      });
  };

  const renewOverOwn = async (): Promise<void> => {
    try {
      await renewOver(own);
    } catch (error) {
      standIn({ reason: error instanceof Error ? error.message : String(error), code: sqlState(error) });
      throw error;
    }
  };

  let renewing: Promise<void> | undefined;
  return {
    react,
    /** Repeats a failed renewal over the pool. One at a time, for at most one heartbeat. */
    standIn,
    renew(): void {
      renewing ??= retryPassing(renewOverOwn, { forMs: heartbeatMs, isWanted: () => !closed })
        .catch((error: unknown) =>
          logger.debug({ err: error }, "the event loop could not renew leases over its own connection"),
        )
        .finally(() => {
          renewing = undefined;
        });
    },
    stop(): void {
      closed = true;
    },
    async settled(): Promise<void> {
      await Promise.all([renewing, standingIn]);
    },
  };
};
