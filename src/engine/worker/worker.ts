import type { Signals } from "../../platform/database/signals.ts";
import type { ClaimedRunRow, ExecutedRunRow } from "../../platform/database/tables.ts";
import type { Faults } from "../../platform/domain/faults.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { Endings } from "../endings.ts";
import type { Execution, Executor } from "../attempt/execution.ts";
import type { Heartbeat } from "../lease/heartbeat.ts";
import type { Queue } from "../queue/queue.ts";
import { createAdoption } from "./adoption.ts";
import { createClaims } from "./claims.ts";
import { drain, type Drained } from "./closing.ts";
import { createWaitersElsewhere } from "./waiters-elsewhere.ts";
import { createRunsInHand } from "./runs-in-hand.ts";
import { createSuspects } from "./suspects.ts";

interface WorkerOptions {
  queue: Queue;
  executor: Executor;
  signals: Signals;
  endings: Pick<Endings, "publish">;
  processId: string;
  concurrency: number;
  leaseSeconds: number;
  heartbeat: Heartbeat;
  faults: Faults;
  logger: Logger;
}

/** A slot reserved for a run that is about to be created, if this process hosts its graph. */
interface Reservation {
  workerId: string;
  leaseSeconds: number;
  graphIds: readonly string[];
}

const POLL_MS = 1_000;

export interface Worker {
  /** Reserves a slot for a run that its creator claims with the insert; undefined if no slot is free. */
  reserve(): Reservation | undefined;
  cancelReservation(): void;
  /** Executes a run claimed with a reservation; undefined if this attempt was executed here already. */
  start(run: ClaimedRunRow): Execution | undefined;
  /**
   * Executes a run after the response to its claim was lost; undefined if this attempt was executed here
   * already.
   */
  adopt(run: ExecutedRunRow): Execution | undefined;
  execution(runId: string): Execution | undefined;
  readonly active: number;
  /** Oldest first. */
  readonly runIds: readonly string[];
  abandonThreads(threadIds: readonly string[]): void;
  wake(): void;
  /** Stops claims until the returned function is called. New runs still take free slots. */
  hold(): () => void;
  open(): void;
  /**
   * Hands every run back within `graceSeconds`. `failed`: one of the runs may be the cause, so their attempts
   * count as lost.
   */
  close(graceSeconds: number, options?: { failed?: boolean }): Promise<Drained>;
}

/**
 * A run created while a slot is free is never pending: its creator reserves the slot and claims the run with
 * the insert.
 */
export const createWorker = (options: WorkerOptions): Worker => {
  const { queue, signals, processId, leaseSeconds, heartbeat } = options;
  const waitersElsewhere = createWaitersElsewhere(signals);
  const suspects = createSuspects({
    isSuspect: (run) => queue.isSuspect(run),
    leaseSeconds,
    atOnce: options.executor.suspectsAtOnce,
    onJoinable: () => claims.wake(),
  });
  const inHand = createRunsInHand({
    ...options,
    suspects,
    waitersElsewhere,
    onGraphEnded: () => claims.graphEnded(),
    onReleased: (mayBeMore) => claims.slotFreed(mayBeMore || queue.limitsRuns),
  });
  const adoption = createAdoption({ ...options, inHand });
  const beginOnce = (run: ClaimedRunRow): Execution | undefined =>
    inHand.get(run.run_id) ?? (inHand.hasBegun(run) ? undefined : inHand.begin(run, true));
  const claims = createClaims({
    ...options,
    inHand,
    suspects,
    adoption,
    pollMs: POLL_MS,
    takes: options.concurrency > 0,
  });
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
    reserve() {
      if (queue.limitsRuns || !claims.leavesSlotsToNewRuns || inHand.freeSlots <= 0) return undefined;
      inHand.reserve(1);
      return { workerId: processId, leaseSeconds, graphIds: queue.graphIds };
    },
    cancelReservation() {
      inHand.release(1);
      claims.slotFreed(false);
    },
    start(run) {
      inHand.release(1);
      return beginOnce(run);
    },
    adopt: beginOnce,
    execution: (runId) => inHand.get(runId),
    get active() {
      return inHand.size;
    },
    get runIds() {
      return inHand.runIds;
    },
    abandonThreads(threadIds) {
      for (const execution of inHand.all()) {
        if (threadIds.includes(execution.threadId)) execution.stop({ kind: "lease-lost" });
      }
    },
    wake: () => claims.wake(),
    hold: () => claims.hold(),
    open() {
      stopListening = listen();
      claims.wake();
    },
    async close(graceSeconds, { failed = false } = {}) {
      stopListening();
      const reason = { kind: failed ? "process-failed" : "shutdown" } as const;
      return await drain(inHand, graceSeconds, reason, claims.stop());
    },
  };
};
