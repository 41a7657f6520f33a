import { LRUCache } from "lru-cache";
import type { ClaimedRunRow } from "../../platform/database/tables.ts";
import type { Faults } from "../../platform/domain/faults.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { Signals } from "../../platform/database/signals.ts";
import type { Execution, Executor } from "../attempt/execution.ts";
import type { Endings } from "../endings.ts";
import type { Heartbeat } from "../lease/heartbeat.ts";
import type { Queue } from "../queue/queue.ts";
import type { RunSelector } from "../queue/attempts.ts";

/**
 * Signals only awaited runs: a signal at the end of every run would cost each process a statement per 10 ms.
 */
export const createWaitersElsewhere = (signals: Pick<Signals, "send">) => {
  const awaited = new Set<string>();
  /** Runs that ended in the current and the previous second: another process may still ask for them. */
  let justEnded: readonly [Set<string>, Set<string>] = [new Set(), new Set()];
  return {
    asked({ threadId, runId }: RunSelector, isHere: boolean): void {
      if (isHere) awaited.add(runId);
      else if (justEnded.some((ended) => ended.has(runId))) signals.send({ kind: "ended", threadId, runId });
    },
    left: (runId: string): boolean => awaited.delete(runId),
    endedUnnoticed: (runId: string): void => void justEnded[0].add(runId),
    tick(): void {
      justEnded = [new Set(), justEnded[0]];
    },
  };
};

export type WaitersElsewhere = ReturnType<typeof createWaitersElsewhere>;

export interface WorkerOptions {
  queue: Queue;
  executor: Executor;
  signals: Signals;
  endings: Pick<Endings, "publish">;
  processId: string;
  /** 0 for a process that only answers requests. */
  concurrency: number;
  leaseSeconds: number;
  heartbeat: Heartbeat;
  /** The poll found due webhooks. */
  onDeliveriesDue?: (() => void) | undefined;
  faults: Faults;
  logger: Logger;
}

interface Reactions {
  onGraphEnded(): void;
  /** `mayBeMore`: a run that waited for this one may start now. */
  onReleased(mayBeMore: boolean): void;
}

const REMEMBERED_AT_MOST = 10_000;

const attemptOf = ({ run_id, attempt }: ClaimedRunRow): string => `${run_id}/${attempt}`;

export const createRunsInHand = (
  { queue, concurrency, executor, heartbeat, endings, faults }: WorkerOptions,
  waitersElsewhere: WaitersElsewhere,
  { onGraphEnded, onReleased }: Reactions,
) => {
  const executions = new Map<string, Execution>();
  /**
   * Prevents a second execution of an ended attempt that the table still assigns to this process: its outcome
   * could not be stored, or a response was late.
   */
  const begun = new LRUCache<string, true>({ max: REMEMBERED_AT_MOST });
  const remember = (run: ClaimedRunRow): void => void begun.set(attemptOf(run), true);
  let reserved = 0;
  /**
   * Executions that store their outcome. They give up their slot, which would be idle for three statements.
   * At most `concurrency` count, so that a slow database does not fill the memory.
   */
  let concluding = 0;
  /** Executions with a process of their own. */
  let alone = 0;

  return {
    get freeSlots(): number {
      return concurrency - (executions.size - Math.min(concluding, concurrency)) - reserved;
    },
    get roomAlone(): number {
      return executor.aloneAtMost - alone;
    },
    get isIdle(): boolean {
      return executions.size === 0 && reserved === 0;
    },
    get size(): number {
      return executions.size;
    },
    get runIds(): string[] {
      return [...executions.keys()];
    },
    get: (runId: string): Execution | undefined => executions.get(runId),
    has: (runId: string): boolean => executions.has(runId),
    hasBegun: (run: ClaimedRunRow): boolean => begun.has(attemptOf(run)),
    /** A copy, because runs begin and end during iteration. */
    all: (): Execution[] => [...executions.values()],
    reserve(slots: number): void {
      reserved += slots;
    },
    release(slots: number): void {
      reserved -= slots;
    },
    begin(run: ClaimedRunRow, creatorIsHere: boolean): Execution {
      faults.reached("after-claim");
      remember(run);
      const isAlone = queue.goesAlone(run);
      if (isAlone) alone += 1;
      const execution = executor.execute(run, creatorIsHere, {
        onGraphEnded: () => {
          concluding += 1;
          onGraphEnded();
        },
        onReleased: (ending) => {
          concluding -= 1;
          if (isAlone) alone -= 1;
          remember(run);
          // This process may hold a later attempt of the run by now.
          const isNewest = executions.get(run.run_id) === execution;
          if (isNewest) executions.delete(run.run_id);
          heartbeat.ended(execution);
          const isAwaited = isNewest && waitersElsewhere.left(run.run_id);
          if (ending !== undefined) {
            const isAwaitedElsewhere = isAwaited || !creatorIsHere || run.resumable;
            endings.publish(
              { run, status: ending.status, error: ending.error },
              { ending, isAwaitedElsewhere },
            );
            if (!isAwaitedElsewhere) waitersElsewhere.endedUnnoticed(run.run_id);
          }
          onReleased(isAlone || ending === undefined || ending.othersWait);
        },
      });
      executions.set(run.run_id, execution);
      heartbeat.begun(execution);
      return execution;
    },
  };
};

export type RunsInHand = ReturnType<typeof createRunsInHand>;
