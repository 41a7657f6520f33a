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

export interface WorkerOptions {
  queue: Queue;
  executor: Executor;
  signals: Signals;
  endings: Pick<Endings, "publish">;
  processId: string;
  /** Runs at a time; 0 for a process that only answers requests. */
  concurrency: number;
  leaseSeconds: number;
  heartbeat: Heartbeat;
  faults: Faults;
  logger: Logger;
}

/** A slot that is held for a run about to be created, if it is of a graph that this process hosts. */
export interface Reservation {
  workerId: string;
  leaseSeconds: number;
  graphIds: readonly string[];
}

/** Should every signal be lost, work is found by looking this often. */
const POLL_MS = 1_000;

export interface Worker {
  /** A slot for a run that its creator claims in the same statement; undefined if there is none to give. */
  reserve(): Reservation | undefined;
  /** Gives a reserved slot back: the run could not be claimed. */
  cancelReservation(): void;
  /** Executes a run that was claimed with a reservation; undefined if it has been executed here since. */
  start(run: ClaimedRunRow): Execution | undefined;
  /**
   * Executes a run that the database says is this process's, though the answer that said so was lost; undefined if it has
   * been executed here since.
   */
  adopt(run: ExecutedRunRow): Execution | undefined;
  execution(runId: string): Execution | undefined;
  /** How many runs are in the hands of this process. */
  readonly active: number;
  /** Their ids, those that have been here longest first. */
  readonly runIds: readonly string[];
  /** The threads are gone, and with them the right to go on with their runs. */
  abandonThreads(threadIds: readonly string[]): void;
  /** Something may have become available. */
  wake(): void;
  /** Takes nothing from the queue until what it returns is called. New runs still take free slots. */
  hold(): () => void;
  /** Takes what waits, from now on whenever there is something. */
  open(): void;
  /**
   * Stops claiming and hands every run back within `graceSeconds`. `failed`: by a fault that may be one of theirs, so
   * their attempts count as lost.
   */
  close(graceSeconds: number, options?: { failed?: boolean }): Promise<Drained>;
}

/**
 * Takes runs from the queue as slots get free and keeps their leases. A run that is created while a slot is free
 * never passes through here as pending: its creator reserves the slot and claims it with the insert.
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
