import type { Queryable } from "../database/database.ts";
import type { CancelAction, RunRow } from "../database/tables.ts";
import { threadBusy } from "../lib/errors.ts";
import type { Announcements } from "./announcements.ts";
import { askToCancel } from "../queue/sql/ask-to-cancel.ts";
import { createBehindOthers as insertBehindOthers } from "../queue/sql/create-behind-others.ts";
import type { CreationRights, NewRun } from "../queue/sql/create.ts";
import { endWaiting } from "../queue/sql/end-waiting.ts";
import { forgetRun } from "../queue/sql/forget.ts";
import { lockUnfinished, type UnfinishedRunRow } from "../queue/sql/lock-unfinished.ts";
import { decideMultitask } from "./multitask.ts";

/** Runs that were ended, or asked to end, for a new one. */
export type Replaced = { run: UnfinishedRunRow; action: CancelAction }[];

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
export const createBehindOthers = (checkpoints: RunCheckpoints) => ({
  /** The caller holds the thread's lock. Throws `threadBusy` if the run would rather not be there then. */
  async store(transaction: Queryable, rights: CreationRights, run: NewRun): Promise<BehindOthers> {
    // Whoever waits behind all of them need not know them: there may be 20,000.
    const unfinished =
      run.multitaskStrategy === "enqueue" ? [] : await lockUnfinished(transaction, run.threadId);
    const decision = decideMultitask(
      run.multitaskStrategy,
      unfinished.map(({ run_id, status }) => ({ runId: run_id, status })),
    );
    if (decision.kind === "reject") throw threadBusy(run.threadId);
    const byId = new Map(unfinished.map((other) => [other.run_id, other]));
    const replaced = decision.cancel.flatMap(({ runId, action }) => {
      const other = byId.get(runId);
      return other === undefined ? [] : [{ run: other, action }];
    });
    const idsOf = (status: "pending" | "running"): string[] =>
      replaced.filter((other) => other.run.status === status).map((other) => other.run.run_id);
    const [pending, running] = [idsOf("pending"), idsOf("running")];
    if (run.multitaskStrategy === "rollback") {
      // One that was recovered from a dead worker is pending, and yet has checkpoints.
      for (const runId of pending) {
        await checkpoints.deleteRun(run.threadId, runId, transaction);
        await forgetRun(transaction, run.threadId, runId);
      }
      await askToCancel(transaction, running, "rollback");
    } else if (run.multitaskStrategy === "interrupt") {
      await endWaiting(transaction, pending);
      await askToCancel(transaction, running, "interrupt");
    }
    return { row: await insertBehindOthers(transaction, rights, run, pending.length), replaced };
  },

  /** Once it is committed. */
  announce(announcements: Announcements, replaced: Replaced): void {
    for (const { run, action } of replaced) {
      if (run.status === "running") announcements.stop(run, action);
      else announcements.ended(run, action);
    }
  },
});
