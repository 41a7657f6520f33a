import { isCancelled, isPassing } from "../platform/database/passing-faults.ts";
import type { ServerMetrics } from "../platform/metrics/metrics.ts";
import { startPeriodic } from "../platform/lib/periodic.ts";
import { CONTINUES, CONTINUES_ALONE, resultOfLost, type RunEnding } from "./attempt/conclusion.ts";
import type { WorkerOptions } from "./worker/runs-in-hand.ts";

/** A gap of this many intervals between two rounds means that the process or the database stood still. */
const LATE_ROUNDS = 2.5;

/**
 * Detects a killed holder half a lease (5 s) after its last heartbeat, a hung or unreachable one after a whole lease
 * (10 s), plus at most one sweep (2 s).
 */
export const startRecovery = (
  parts: Pick<WorkerOptions, "queue" | "executor" | "endings" | "signals" | "leaseSeconds" | "logger"> & {
    metrics: Pick<ServerMetrics, "attemptsLost">;
  },
  sweepSeconds: number,
): { close(): Promise<void> } => {
  const { queue, executor, endings, signals, leaseSeconds, metrics, logger } = parts;

  /** When the last round that reached the database began, by this process's clock. */
  let sweptAt = performance.now();
  let failed = false;
  let sparedUntil = -Infinity;
  const isLate = (sinceMs: number): boolean =>
    performance.now() - sinceMs > sweepSeconds * 1_000 * LATE_ROUNDS;
  const sweep = async (): Promise<void> => {
    // After an outage or a stall of this process every lease is old, so holders get one round to renew. After
    // an outage they get half a lease, because the next round may follow soon.
    const now = performance.now();
    if (isLate(sweptAt)) {
      await queue.assertWritable();
      sweptAt = now;
      if (failed) sparedUntil = now + (leaseSeconds * 1_000) / 2;
      failed = false;
      return;
    }
    if (now < sparedUntil) {
      sweptAt = now;
      return;
    }
    const found = await queue.findToRecover(leaseSeconds);
    // The database stood still meanwhile, so the next round is the one in which holders renew.
    if (isLate(now)) return;
    const requeued = found.lost ? await queue.requeueLost(leaseSeconds) : [];
    sweptAt = now;
    metrics.attemptsLost("server", requeued.length);
    for (const lost of requeued) {
      logger.warn({ ...lost }, queue.goesAlone(lost) ? CONTINUES_ALONE : CONTINUES);
      signals.send({ kind: "available", threadId: lost.thread_id, runId: lost.run_id });
    }
    if (found.later) await queue.putBehind();
    for (const run of found.behind ? await queue.advanceForgotten() : [])
      signals.send({ kind: "available", ...run });
    for (const run of found.lost ? await queue.listAbandoned(leaseSeconds) : []) {
      let ending: RunEnding | undefined;
      try {
        ending = await executor.concludeAbandoned(run, resultOfLost(run));
      } catch (error) {
        // A run that can't be ended must not delay the others.
        if (isPassing(error) && !isCancelled(error)) throw error;
        logger.error({ err: error, run_id: run.run_id }, "a run that lost its process could not be ended");
      }
      if (ending === undefined) continue;
      metrics.attemptsLost("server", 1);
      endings.publish({ run, status: ending.status, error: ending.error });
      logger.warn({ run_id: run.run_id, status: ending.status }, "a run that lost its process was ended");
      signals.send({ kind: "available", threadId: run.thread_id, runId: run.run_id });
    }
  };

  return startPeriodic({
    everyMs: sweepSeconds * 1_000,
    work: sweep,
    onError(error) {
      failed = true;
      if (isPassing(error)) logger.debug({ err: error }, "the sweep has to wait for the database");
      else logger.error({ err: error }, "the sweep for lost runs failed");
    },
  });
};
