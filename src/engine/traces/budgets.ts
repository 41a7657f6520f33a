import { LRUCache } from "lru-cache";
import type { Budget } from "../../graphs/project/usage.ts";
import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { tooMany } from "../../platform/domain/errors.ts";
import { OF_RUN, type RunSelector } from "../queue/attempts.ts";
import type { AttemptResult, GraphExecution, GraphExecutor, StopReason } from "../executors/executor.ts";

/** Whom a run counts for. */
export interface Counted {
  /** As `runs.caller`; null: the run counts for no caller. */
  caller: string | null;
  assistantId: string;
}

interface Used {
  tokens: number;
  cost: number;
}

/** Clients need not ask more often, although a budget may be raised at any time. */
const RETRY_SECONDS = 60;

/** Rows are this old at most when their transaction is committed. */
const SETTLED_AFTER_SECONDS = 60;
const KEPT_AT_MOST = 10_000;

interface SumsRow extends Used {
  settled_tokens: number;
  settled_cost: number;
  /** The beginning of the day or month, and the end of the settled sums, as text. */
  period: string;
  until: string;
  /** The database's clock went back. */
  is_back: boolean;
}

/** The sums of a day or month up to `until`: these rows no longer change. */
type Settled = Used & Pick<SumsRow, "period" | "until">;

/** Sums the period from `from` on; null: all of it. */
const sumsOf = (column: string, type: "text" | "uuid") =>
  statement({ name: type, every: "text", from: "timestamptz" }, (sql) => {
    const settled = "filter (where u.created_at < t.until)";
    return `with t as (
  select date_trunc(${sql.every}, now() at time zone 'UTC') at time zone 'UTC' as period,
    now() - interval '${SETTLED_AFTER_SECONDS} seconds' as until)
select coalesce(sum(u.input_tokens + u.output_tokens), 0)::float8 as tokens, coalesce(sum(u.cost), 0)::float8 as cost,
  coalesce(sum(u.input_tokens + u.output_tokens) ${settled}, 0)::float8 as settled_tokens,
  coalesce(sum(u.cost) ${settled}, 0)::float8 as settled_cost,
  t.period::text, t.until::text, coalesce(t.until < ${sql.from}, false) as is_back
from t left join threadloom.model_usage u
  on u.${column} = ${sql.name} and u.created_at >= greatest(t.period, ${sql.from})
group by t.period, t.until`;
  });
/** Index: model_usage_of_caller. */
const OF_CALLER = sumsOf("caller", "text");
/** Index: model_usage_of_assistant. */
const OF_ASSISTANT = sumsOf("assistant_id", "uuid");
/**
 * `has_begun`: an earlier attempt stored tokens, or the newest checkpoint of the thread. Without a checkpoint, a later
 * attempt starts over. Indexes: runs_pkey, model_usage_pkey, checkpoints_by_seq.
 */
const STARTING = statement(OF_RUN, (sql) => {
  const ofRun = `thread_id = ${sql.threadId} and run_id = ${sql.runId}`;
  return `select caller, attempt > 1 and (exists (select from threadloom.model_usage where ${ofRun})
    or coalesce(${sql.runId} = (select run_id from threadloom.checkpoints
      where thread_id = ${sql.threadId} and checkpoint_ns = '' order by seq desc limit 1), false)) as has_begun
  from threadloom.runs where ${ofRun}`;
});

const sentenceOf = (
  { per, every, tokens, cost }: Budget,
  used: Used,
  currency = "in money",
): string | undefined => {
  const whose = per === "caller" ? "This caller" : "This assistant";
  const when = every === "day" ? "today" : "this month";
  const next = every === "day" ? "tomorrow" : "next month";
  const of = (what: string): string =>
    `${whose} has used its budget of ${what} for ${when}; runs start again ${next} (UTC).`;
  if (tokens !== undefined && used.tokens >= tokens) return of(`${tokens} tokens`);
  if (cost !== undefined && used.cost >= cost) return of(`${cost} ${currency}`);
  return undefined;
};

/** Checks the project's budgets. Without budgets, use `undefined` instead. */
export const createBudgets = (database: Database, budgets: readonly Budget[], currency?: string) => {
  /** Spares each check the rows of all runs before: a month of a busy assistant took half a second. */
  const settled = new LRUCache<string, Settled>({ max: KEPT_AT_MOST });

  const usedOf = async ({ per, every }: Pick<Budget, "per" | "every">, name: string): Promise<Used> => {
    const key = `${per} ${every} ${name}`;
    const known = settled.get(key);
    const sums = per === "caller" ? OF_CALLER : OF_ASSISTANT;
    const [row] = await sums.query<SumsRow>(database, { name, every, from: known?.until ?? null });
    if (row === undefined) return { tokens: 0, cost: 0 };
    const { period, until, is_back, ...summed } = row;
    if (is_back || (known !== undefined && known.period !== period)) {
      settled.delete(key);
      return await usedOf({ per, every }, name);
    }
    const { tokens, cost } = known ?? { tokens: 0, cost: 0 };
    settled.set(key, {
      period,
      until,
      tokens: tokens + summed.settled_tokens,
      cost: cost + summed.settled_cost,
    });
    return { tokens: tokens + summed.tokens, cost: cost + summed.cost };
  };

  /** Why a run may not start, as a sentence; undefined: it may. */
  const refusalOf = async ({ caller, assistantId }: Counted): Promise<string | undefined> => {
    for (const budget of budgets) {
      const name = budget.per === "caller" ? caller : assistantId;
      const sentence = name === null ? undefined : sentenceOf(budget, await usedOf(budget, name), currency);
      if (sentence !== undefined) return sentence;
    }
    return undefined;
  };

  return {
    refusalOf,

    /** As `refusalOf`, for an attempt of a stored run. A run that has begun goes on. */
    async refusalOfRun(run: RunSelector, assistantId: string): Promise<string | undefined> {
      const [row] = await STARTING.query<{ caller: string | null; has_begun: boolean }>(database, run);
      if (row?.has_begun === true) return undefined;
      return await refusalOf({ caller: row?.caller ?? null, assistantId });
    },

    /** Throws `tooMany`. */
    async assertRoom(run: Counted): Promise<void> {
      const sentence = await refusalOf(run);
      if (sentence !== undefined) throw tooMany(sentence, RETRY_SECONDS);
    },
  };
};

export type Budgets = ReturnType<typeof createBudgets>;

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
  get aloneAtMost() {
    return executor.aloneAtMost;
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
