import type { Budgets } from "./budgets.ts";
import type { AttemptResult, GraphExecution, GraphExecutor, StopReason } from "../executors/executor.ts";

class BudgetExceededError extends Error {
  override readonly name = "BudgetExceededError";
  /** The log shows the message: it has no user data. */
  readonly hidesContents = true;
}

/**
 * Refuses runs whose budget is used up when they start. Many may be created before the first of them has used anything.
 */
export const withinBudgets = (
  executor: GraphExecutor,
  budgets: Pick<Budgets, "refusalOfRun">,
): GraphExecutor => ({
  get hasRoomAlone() {
    return executor.hasRoomAlone;
  },
  execute(run, sink, options) {
    let begun: GraphExecution | undefined;
    let stopReason: StopReason | undefined;
    let wantsValues = false;
    const begin = async (): Promise<AttemptResult> => {
      const selector = { threadId: run.thread_id, runId: run.run_id };
      const refusal = await budgets.refusalOfRun(selector, run.assistant_id);
      if (refusal === undefined && stopReason === undefined) {
        begun = executor.execute(run, sink, options);
        if (wantsValues) begun.wantValues();
        return await begun.result;
      }
      options.onGraphEnded();
      if (stopReason !== undefined) return { kind: "stopped", reason: stopReason };
      return { kind: "failed", error: new BudgetExceededError(refusal) };
    };
    const failed = (error: unknown): AttemptResult => {
      options.onGraphEnded();
      return { kind: "failed", error };
    };
    return {
      result: begin().catch(failed),
      stop(reason) {
        stopReason ??= reason;
        begun?.stop(reason);
      },
      wantValues() {
        wantsValues = true;
        begun?.wantValues();
      },
    };
  },
});
