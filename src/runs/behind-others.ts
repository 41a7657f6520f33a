import type { Queryable } from "../database/database.ts";
import type { RunRow } from "../database/tables.ts";
import { threadBusy } from "../lib/errors.ts";
import type { Announcements } from "./announcements.ts";
import { forgetRun } from "./forgetting.ts";
import { decideMultitask, type MultitaskDecision } from "./multitask.ts";
import type { NewRun, RunRepository } from "./repository.ts";

/** Runs that were ended, or asked to end, for a new one. */
export type Replaced = Extract<MultitaskDecision, { kind: "accept" }>["cancel"];

export interface BehindOthers {
  /** Undefined if the assistant is missing: the caller rolls back, since others may have been ended for the run. */
  row: RunRow | undefined;
  replaced: Replaced;
}

export interface RunCheckpoints {
  /** All that a run has written to the state of its thread. */
  deleteRun(threadId: string, runId: string, transaction: Queryable): Promise<void>;
}

/** The slow way to create a run, for a thread that may not be idle: with the decision in multitask.ts. */
export const createBehindOthers = (repository: RunRepository, checkpoints: RunCheckpoints) => ({
  /** The caller holds the thread's lock. Throws `threadBusy` if the run would rather not be there then. */
  async store(transaction: Queryable, run: NewRun): Promise<BehindOthers> {
    const unfinished = await repository.lockUnfinished(transaction, run.threadId);
    const decision = decideMultitask(
      run.multitaskStrategy,
      unfinished.map(({ run_id, status }) => ({ runId: run_id, status })),
    );
    if (decision.kind === "reject") throw threadBusy(run.threadId);
    const { cancel: replaced } = decision;
    const idsOf = (status: "pending" | "running"): string[] =>
      replaced.filter((other) => other.status === status).map((other) => other.runId);
    const [pending, running] = [idsOf("pending"), idsOf("running")];
    if (run.multitaskStrategy === "rollback") {
      // One that was recovered from a dead worker is pending, and yet has checkpoints.
      for (const runId of pending) {
        await checkpoints.deleteRun(run.threadId, runId, transaction);
        await forgetRun(transaction, run.threadId, runId);
      }
      await repository.askToCancel(transaction, running, "rollback");
    } else if (run.multitaskStrategy === "interrupt") {
      await repository.endPending(transaction, pending);
      await repository.askToCancel(transaction, running, "interrupt");
    }
    return { row: await repository.createBehindOthers(transaction, run, pending.length), replaced };
  },

  /** Once it is committed. */
  announce(announcements: Announcements, replaced: Replaced): void {
    for (const { runId, status, action } of replaced) {
      if (status === "running") announcements.stop(runId, action);
      else announcements.ended(runId);
    }
  },
});
