import type { ClaimedRunRow } from "../../platform/database/tables.ts";
import type { Execution } from "../attempt/execution.ts";
import { createAdoption, createClaims } from "./claims.ts";
import {
  createRunsInHand,
  createWaitersElsewhere,
  type RunsInHand,
  type WorkerOptions,
} from "./runs-in-hand.ts";
import type { StopReason } from "../executors/executor.ts";

const CLOSING_POLL_MS = 10;

const pause = async (ms: number): Promise<void> => await new Promise((resolve) => setTimeout(resolve, ms));

export interface Drained {
  ended: number;
  /** Another process continues these runs, or this one after a restart. */
  handedBack: number;
}

/** Resolves when no run is left. Runs that have not ended within `graceSeconds` are stopped for `reason`. */
const drain = async (
  inHand: Pick<RunsInHand, "all" | "isIdle">,
  graceSeconds: number,
  reason: StopReason,
  claimsStopped: Promise<void>,
): Promise<Drained> => {
  const seen = new Map<string, boolean>();
  const stopAll = (): void => {
    for (const execution of inHand.all()) execution.stop(reason);
  };
  const allEnded = async (): Promise<void> => {
    await Promise.all(
      inHand.all().map(async ({ runId, ended }) => {
        seen.set(runId, (await ended) !== undefined);
      }),
    );
  };
  const before = allEnded();
  await claimsStopped;
  const drained = Promise.all([before, allEnded()]);
  let timer: NodeJS.Timeout | undefined;
  const grace = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceSeconds * 1_000);
  });
  await Promise.race([drained, grace]);
  clearTimeout(timer);
  stopAll();
  await drained;
  // A run that was being created may have started since; it is handed back, too.
  while (!inHand.isIdle) {
    stopAll();
    await allEnded();
    await pause(CLOSING_POLL_MS);
  }
  const ended = [...seen.values()].filter(Boolean).length;
  return { ended, handedBack: seen.size - ended };
};

const POLL_MS = 1_000;

/**
 * A run created while a slot is free is never pending: its creator reserves the slot and claims the run with
 * the insert.
 */
export const createWorker = (options: WorkerOptions) => {
  const { queue, signals, processId, leaseSeconds, heartbeat } = options;
  const waitersElsewhere = createWaitersElsewhere(signals);
  const inHand = createRunsInHand(options, waitersElsewhere, {
    onGraphEnded: () => claims.graphEnded(),
    onReleased: (mayBeMore) => claims.slotFreed(mayBeMore || queue.limitsRuns),
  });
  const adoption = createAdoption(options, inHand);
  const beginOnce = (run: ClaimedRunRow): Execution | undefined =>
    inHand.get(run.run_id) ?? (inHand.hasBegun(run) ? undefined : inHand.begin(run, true));
  const claims = createClaims(options, { inHand, adoption }, POLL_MS);
  let stopListening = (): void => undefined;

  const listen = (): (() => void) => {
    const unsubscribe = signals.subscribe((signal) => {
      const { kind, runId } = signal;
      if (kind === "available") claims.wake();
      else if (kind === "cancel" && inHand.has(runId)) heartbeat.renew();
      else if (kind === "awaited" || kind === "watch") waitersElsewhere.asked(signal, inHand.has(runId));
    });
    const poll = setInterval(() => {
      waitersElsewhere.tick();
      claims.poll();
    }, POLL_MS);
    return () => {
      unsubscribe();
      clearInterval(poll);
    };
  };

  return {
    /** Undefined if no slot is free for a new run. */
    reserve() {
      if (queue.limitsRuns || !claims.leavesSlotsToNewRuns || inHand.freeSlots <= 0) return undefined;
      inHand.reserve(1);
      return { workerId: processId, leaseSeconds, graphIds: queue.graphIds };
    },
    cancelReservation(): void {
      inHand.release(1);
      claims.slotFreed(false);
    },
    /** Executes a run claimed with a reservation; undefined if this attempt was executed here already. */
    start(run: ClaimedRunRow): Execution | undefined {
      inHand.release(1);
      return beginOnce(run);
    },
    /** Like `start`, after the response to the run's claim was lost. */
    adopt: beginOnce,
    execution: (runId: string): Execution | undefined => inHand.get(runId),
    get active(): number {
      return inHand.size;
    },
    /** Oldest first. */
    get runIds(): readonly string[] {
      return inHand.runIds;
    },
    abandonThreads(threadIds: readonly string[]): void {
      for (const execution of inHand.all()) {
        if (threadIds.includes(execution.threadId)) execution.stop({ kind: "lease-lost" });
      }
    },
    /** A run may wait. */
    wake: claims.wake,
    /** Stops claims until the returned function is called. New runs still take free slots. */
    hold: () => claims.hold(),
    open(): void {
      stopListening = listen();
      claims.wake();
    },
    /**
     * Hands every run back within `graceSeconds`. `failed`: one of the runs may be the cause, so their attempts
     * count as lost.
     */
    async close(graceSeconds: number, { failed = false } = {}): Promise<Drained> {
      stopListening();
      const reason = { kind: failed ? "process-failed" : "shutdown" } as const;
      return await drain(inHand, graceSeconds, reason, claims.stop());
    },
  };
};

export type Worker = ReturnType<typeof createWorker>;
