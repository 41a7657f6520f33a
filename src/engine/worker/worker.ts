import type { Signals } from "../../database/signals.ts";
import type { ClaimedRunRow, RunRow } from "../../database/tables.ts";
import { isPassing, mayHaveBeenCommitted } from "../../database/passing-faults.ts";
import { createBackOff } from "../../lib/back-off.ts";
import { sqlState, UNIQUE_VIOLATION } from "../../domain/errors.ts";
import type { Faults } from "../../domain/faults.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Endings } from "../endings.ts";
import type { Execution, Executor } from "../attempt/execution.ts";
import type { Heartbeat } from "../lease/heartbeat.ts";
import { selectorOf } from "../../queue/attempts.ts";
import type { Queue } from "../../queue/queue.ts";
import { createSuspects } from "./suspects.ts";

export interface WorkerOptions {
  queue: Queue;
  executor: Executor;
  signals: Signals;
  endings: Pick<Endings, "tell">;
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
/** A claim whose answer was lost is committed by then, if it is at all. */
const UNSURE_MS = 3_000;
/**
 * Slots that get free while runs wait are filled by a claim each, so many at a time: waiting for the one under way
 * before the next left slots idle for another round trip.
 */
const CLAIMS_AT_MOST = 3;
/** A statement that creates a run takes a few milliseconds. */
const CLOSING_LOOK_MS = 10;

const attemptOf = ({ run_id, attempt }: ClaimedRunRow): string => `${run_id}/${attempt}`;

export interface Worker {
  /** A slot for a run that its creator claims in the same statement; undefined if there is none to give. */
  reserve(): Reservation | undefined;
  /** Gives a reserved slot back: the run could not be claimed. */
  cancelReservation(): void;
  /** Executes a run that was claimed with a reservation; undefined if it has been executed here since. */
  start(run: ClaimedRunRow): Execution | undefined;
  /** Executes a run that the database says is this process's, though the answer that said so was lost. */
  adopt(run: RunRow): Execution;
  execution(runId: string): Execution | undefined;
  /** How many runs are in the hands of this process. */
  readonly active: number;
  /** Their ids, those that have been here longest first. */
  readonly runIds: readonly string[];
  /** The threads are gone, and with them the right to go on with their runs. */
  abandonThreads(threadIds: readonly string[]): void;
  /** Something may have become available. */
  wake(): void;
  /** Takes what waits, from now on whenever there is something. */
  open(): void;
  /**
   * Stops claiming and hands every run back within `graceSeconds`. `failed`: by a fault that may be one of theirs, so
   * their attempts count as lost.
   */
  close(graceSeconds: number, options?: { failed?: boolean }): Promise<void>;
}

/**
 * Takes runs from the queue as slots get free and keeps their leases. A run that is created while a slot is free
 * never passes through here as pending: its creator reserves the slot and claims it with the insert.
 */
export const createWorker = (options: WorkerOptions): Worker => {
  const {
    queue,
    executor,
    signals,
    endings,
    processId,
    concurrency,
    leaseSeconds,
    heartbeat,
    faults,
    logger,
  } = options;
  const executions = new Map<string, Execution>();
  /** Runs here whose end, or whose events, somebody on another process waits for. */
  const awaited = new Set<string>();
  /** Runs that ended here in this second and in the one before: who asks for them had not heard of it. */
  let justEnded: readonly [Set<string>, Set<string>] = [new Set(), new Set()];
  let reserved = 0;
  const suspects = createSuspects({
    isSuspect: (run) => queue.isSuspect(run),
    leaseSeconds,
    atOnce: executor.suspectsAtOnce,
    onJoinable: () => wake(),
  });
  let stopping = false;
  const claims = new Set<Promise<void>>();
  const claimBackOff = createBackOff({ longestMs: POLL_MS });
  let wanted = false;
  /** When the answer to a claim was lost last: the table may say that this process holds runs that it doesn't know. */
  let unsureSince: number | undefined;
  /** Attempts that were found so. */
  const adopted = new Set<string>();
  /** Runs are known to wait: new ones queue up behind them instead of taking the next free slot. */
  let backlog = false;

  /**
   * Executions whose graph has ended and whose last checkpoints and outcome are being stored. They hold no slot: the
   * next run is claimed meanwhile, else every slot would stand idle for three statements between two runs. But not more
   * than there are slots, so that a slow database doesn't fill the memory with them.
   */
  let concluding = 0;

  const freeSlots = (): number =>
    suspects.isAlone ? 0 : concurrency - (executions.size - Math.min(concluding, concurrency)) - reserved;

  const begin = (run: ClaimedRunRow, creatorIsHere: boolean): Execution => {
    faults.reached("after-claim");
    const execution = executor.execute(run, creatorIsHere, {
      onGraphEnded() {
        concluding += 1;
        // Not after every run: looking into an empty queue would be one more statement for each of them.
        if (backlog || wanted) wake();
      },
      onReleased(ending) {
        concluding -= 1;
        // This process may hold the run again by now, in a later attempt.
        const isNewest = executions.get(run.run_id) === execution;
        if (isNewest) executions.delete(run.run_id);
        heartbeat.ended(execution);
        if (isNewest) suspects.released(run.run_id);
        const isAwaited = isNewest && awaited.delete(run.run_id);
        if (ending !== undefined) {
          // A signal per run costs each process of several a statement per 10 ms, for waiters that are rarely there.
          const isHeardElsewhere = isAwaited || !creatorIsHere || run.resumable;
          endings.tell({ run, status: ending.status, error: ending.error }, { ending, isHeardElsewhere });
          if (!isHeardElsewhere) justEnded[0].add(run.run_id);
        }
        if (wanted || ending === undefined || ending.othersWait) wake();
      },
    });
    executions.set(run.run_id, execution);
    heartbeat.begun(execution);
    suspects.begun(run);
    return execution;
  };

  const noteLostAnswer = (error: unknown): void => {
    if (mayHaveBeenCommitted(error)) unsureSince = performance.now();
  };

  /** Executes what this process holds without knowing it: nobody else would before the lease is over. */
  const adoptUnknown = async (): Promise<void> => {
    const since = unsureSince;
    if (since === undefined || stopping) return;
    const lookedAt = performance.now();
    try {
      for (const run of await queue.listUnknown(processId, [...executions.keys()])) {
        // It may have come to be known, or its slot have been given away, while the answer was on its way.
        if (executions.has(run.run_id) || adopted.has(attemptOf(run))) continue;
        logger.warn(
          { run_id: run.run_id },
          "the answer to the claim of a run was lost; the run goes on here",
        );
        if (freeSlots() > 0) {
          adopted.add(attemptOf(run));
          begin(run, false);
        } else await queue.handBack(selectorOf(run));
      }
      if (unsureSince === since && lookedAt - since > UNSURE_MS) unsureSince = undefined;
    } catch (error) {
      logger.debug({ err: error }, "runs whose claim was not heard of can't be looked for now");
    }
  };

  const claim = async (): Promise<void> => {
    wanted = false;
    const slots = freeSlots();
    reserved += slots;
    let runs: ClaimedRunRow[] = [];
    try {
      runs = await queue.claim(processId, leaseSeconds, slots);
      claimBackOff.reset();
      backlog = runs.length === slots;
      wanted ||= backlog;
    } catch (error) {
      noteLostAnswer(error);
      // Another claimer was faster on a thread: look again.
      if (sqlState(error) === UNIQUE_VIOLATION) wanted = true;
      else if (isPassing(error)) {
        logger.debug({ err: error }, "the queue can't be read for now");
        setTimeout(wake, claimBackOff.next()).unref();
      } else logger.error({ err: error }, "runs could not be claimed");
    } finally {
      reserved -= slots;
    }
    for (const run of runs) if (!adopted.has(attemptOf(run))) begin(run, false);
  };

  const wake = (): void => {
    wanted = true;
    if (stopping || concurrency === 0 || claims.size === CLAIMS_AT_MOST) return;
    if (freeSlots() <= 0) {
      backlog ||= claims.size === 0;
      return;
    }
    const claiming = claim().finally(() => {
      claims.delete(claiming);
      if (wanted && freeSlots() > 0) wake();
    });
    claims.add(claiming);
  };

  /** The looks for a suspect, which `claim` leaves alone, are few: there hardly ever is one. */
  const claimSuspect = async (): Promise<void> => {
    if (stopping || suspects.isFull || (freeSlots() <= 0 && !suspects.hasOwnPlaces)) return;
    const isIdle = executions.size === 0 && reserved === 0 && claims.size === 0 && !backlog;
    try {
      // No slot is held for what is almost never there: new runs would have to wait for this look, each second. Should
      // one take the last slot meanwhile, the process executes one run more than it may for once.
      const run = await queue.claimSuspect(processId, leaseSeconds, suspects.restSeconds(isIdle));
      if (run !== undefined) begin(run, false);
    } catch (error) {
      noteLostAnswer(error);
      // The next look is a second away, whatever it was.
      logger.debug({ err: error }, "a run that lost its workers could not be claimed");
    }
  };

  const hear = (): (() => void) =>
    signals.subscribe(({ kind, threadId, runId }) => {
      if (kind === "available") wake();
      const isHere = executions.has(runId);
      if (kind === "cancel" && isHere) heartbeat.renew();
      if (kind !== "awaited" && kind !== "watch") return;
      if (isHere) awaited.add(runId);
      else if (justEnded.some((ended) => ended.has(runId))) {
        signals.send({ kind: "ended", threadId, runId });
      }
    });
  let claimingSuspect: Promise<void> | undefined;
  const look = (): void => {
    justEnded = [new Set(), justEnded[0]];
    // First of all, for the other claim takes every free slot.
    claimingSuspect ??= adoptUnknown()
      .then(claimSuspect)
      .finally(() => {
        claimingSuspect = undefined;
        wake();
      });
  };
  let stopListening = (): void => undefined;

  return {
    reserve() {
      if (stopping || backlog || freeSlots() <= 0) return undefined;
      reserved += 1;
      return { workerId: processId, leaseSeconds, graphIds: queue.graphIds };
    },
    cancelReservation() {
      reserved -= 1;
      if (wanted) wake();
    },
    start(run) {
      reserved -= 1;
      const known = executions.get(run.run_id);
      return known ?? (adopted.has(attemptOf(run)) ? undefined : begin(run, true));
    },
    adopt: (run) => executions.get(run.run_id) ?? begin(run, true),
    execution: (runId) => executions.get(runId),
    get active() {
      return executions.size;
    },
    get runIds() {
      return [...executions.keys()];
    },
    abandonThreads(threadIds) {
      for (const execution of executions.values()) {
        if (threadIds.includes(execution.threadId)) execution.stop({ kind: "lease-lost" });
      }
    },
    wake,
    open() {
      const unsubscribe = hear();
      const poll = setInterval(look, POLL_MS);
      stopListening = () => {
        unsubscribe();
        clearInterval(poll);
      };
      wake();
    },
    async close(graceSeconds, { failed = false } = {}) {
      const reason = { kind: failed ? "process-failed" : "shutdown" } as const;
      stopping = true;
      stopListening();
      await Promise.all([...claims, claimingSuspect]);
      const drained = Promise.all([...executions.values()].map((execution) => execution.ended));
      let timer: NodeJS.Timeout | undefined;
      const grace = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, graceSeconds * 1_000);
      });
      await Promise.race([drained, grace]);
      clearTimeout(timer);
      for (const execution of executions.values()) execution.stop(reason);
      await drained;
      // A run whose creation was under way has been started since; it is handed back, too.
      while (executions.size > 0 || reserved > 0) {
        for (const execution of executions.values()) execution.stop(reason);
        await Promise.all([...executions.values()].map((execution) => execution.ended));
        await new Promise((resolve) => setTimeout(resolve, CLOSING_LOOK_MS));
      }
    },
  };
};
