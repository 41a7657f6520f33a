import type { Queryable } from "../../../platform/database/database.ts";
import type { CancelAction, RunRow } from "../../../platform/database/tables.ts";
import { threadBusy, ThreadChangedError } from "../../../platform/domain/errors.ts";
import type { Announcements } from "../announcements.ts";
import type { RunEnd } from "../../../engine/queue/attempts.ts";
import type { RunEnds } from "../../../engine/queue/ending.ts";
import { askToCancel } from "../../../engine/queue/sql/ask-to-cancel.ts";
import { createBehindOthers } from "../../../engine/queue/sql/create-behind-others.ts";
import type { CreationRights, NewRun } from "../../../engine/queue/sql/create.ts";
import { lockUnfinished, type UnfinishedRunRow } from "../../../engine/queue/sql/lock-unfinished.ts";
import { turnsOfThread } from "../../../engine/queue/sql/turns-of-thread.ts";
import { decideMultitask } from "./multitask.ts";
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
    const unfinished =
      run.multitaskStrategy === "enqueue" ? [] : await lockUnfinished(transaction, run.threadId);
    const decision = decideMultitask(
      run.multitaskStrategy,
      unfinished.map(({ run_id, status }) => ({ runId: run_id, status })),
    );
    if (decision.kind === "reject") throw threadBusy(run.threadId);
    const byId = new Map(unfinished.map((other) => [other.run_id, other]));
    const ended: RunEnd[] = [];
    const askedToStop: { run: UnfinishedRunRow; action: CancelAction }[] = [];
    for (const action of ["interrupt", "rollback"] as const) {
      const meant = decision.cancel.filter((one) => one.action === action);
      const others = meant.flatMap(({ runId }) => byId.get(runId) ?? []);
      const pending = others.filter(({ status }) => status === "pending");
      const running = others.filter(({ status }) => status === "running");
      ended.push(...(await ends.replaceWaiting(transaction, pending, action, "replaced")));
      if (running.length > 0) await askToCancel(transaction, running, action, "replaced");
      askedToStop.push(...running.map((other) => ({ run: other, action })));
    }
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
