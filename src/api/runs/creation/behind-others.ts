import type { Queryable } from "../../../platform/database/database.ts";
import type { CancelAction, RunRow, RunStatus } from "../../../platform/database/tables.ts";
import { threadBusy, ThreadChangedError } from "../../../platform/domain/errors.ts";
import type { Announcements } from "../announcements.ts";
import type { RunEnd } from "../../../engine/queue/attempts.ts";
import type { RunEnds } from "../../../engine/queue/ending.ts";
import { askToCancel } from "../../../engine/queue/sql/ask-to-cancel.ts";
import { createBehindOthers } from "../../../engine/queue/sql/create.ts";
import type { CreationRights, NewRun } from "../../../engine/queue/sql/create.ts";
import { lockUnfinished, type UnfinishedRunRow } from "../../../engine/queue/sql/lock-unfinished.ts";
import { turnsOfThread } from "../../../engine/queue/sql/turns-of-thread.ts";
import type { PendingLimits } from "./pending-limits.ts";

export interface Replaced {
  ended: readonly RunEnd[];
  askedToStop: readonly { run: UnfinishedRunRow; action: CancelAction }[];
}

export const NOTHING_REPLACED: Replaced = { ended: [], askedToStop: [] };

export interface BehindOthers {
  /** Undefined if the assistant is missing: the caller must roll back, because runs may have been ended. */
  row: RunRow | undefined;
  replaced: Replaced;
}

export const createBehindOthersStore = (ends: Pick<RunEnds, "replaceWaiting">, limits: PendingLimits) => ({
  /**
   * The caller holds the thread's lock. Throws `threadBusy` for `reject`, ThreadChangedError if a run was created since
   * `turnsSeen`, `tooMany` if too many are pending.
   */
  async store(transaction: Queryable, rights: CreationRights, run: NewRun): Promise<BehindOthers> {
    const { turnsSeen } = run;
    if (turnsSeen !== undefined && (await turnsOfThread(transaction, run.threadId)) !== turnsSeen)
      throw new ThreadChangedError(run.threadId);
    // `enqueue` does not need the other runs, and a thread may have 20,000.
    const strategy = run.multitaskStrategy;
    const unfinished = strategy === "enqueue" ? [] : await lockUnfinished(transaction, run.threadId);
    if (strategy === "reject" && unfinished.length > 0) throw threadBusy(run.threadId);
    // As in the hosted service, `interrupt` and `rollback` also end pending runs.
    const action = strategy === "rollback" ? "rollback" : "interrupt";
    const are = (status: RunStatus) => unfinished.filter((other) => other.status === status);
    const running = are("running");
    const ended = await ends.replaceWaiting(transaction, are("pending"), action, "replaced");
    if (running.length > 0) await askToCancel(transaction, running, action, "replaced");
    const askedToStop = running.map((other) => ({ run: other, action }) as const);
    const pendingAtMost = limits.onThread(run);
    const behind = { run, replacedPending: ended.length, pendingAtMost };
    const [row] = await createBehindOthers(transaction, rights, [behind]);
    if (row === undefined) await limits.assertRoomOnThread(transaction, run);
    return { row, replaced: { ended, askedToStop } };
  },

  /** Call after the commit. */
  announce(announcements: Announcements, { ended, askedToStop }: Replaced): void {
    for (const { run, action } of askedToStop) announcements.stop(run, action);
    for (const end of ended) announcements.ended(end);
  },
});

export type BehindOthersStore = ReturnType<typeof createBehindOthersStore>;
