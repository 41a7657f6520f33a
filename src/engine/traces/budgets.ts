import type { Budget } from "../../graphs/project/usage.ts";
import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { tooMany } from "../../platform/domain/errors.ts";
import { OF_RUN, type RunSelector } from "../queue/attempts.ts";

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

const SUMS =
  "coalesce(sum(u.input_tokens + u.output_tokens), 0)::float8 as tokens, coalesce(sum(u.cost), 0)::float8 as cost";
const since = (every: string): string =>
  `u.created_at >= date_trunc(${every}, now() at time zone 'UTC') at time zone 'UTC'`;

/** Index: model_usage_of_caller. */
const OF_CALLER = statement(
  { name: "text", every: "text" },
  (sql) =>
    `select ${SUMS} from threadloom.model_usage u where u.caller = ${sql.name} and ${since(sql.every)}`,
);
/** Index: model_usage_of_assistant. */
const OF_ASSISTANT = statement(
  { name: "uuid", every: "text" },
  (sql) =>
    `select ${SUMS} from threadloom.model_usage u where u.assistant_id = ${sql.name} and ${since(sql.every)}`,
);
/**
 * `has_begun`: an earlier attempt stored tokens, or the newest checkpoint of the thread. Without a checkpoint, a later
 * attempt starts over. Indexes: runs_pkey, model_usage_pkey, checkpoints_pkey.
 */
const STARTING = statement(OF_RUN, (sql) => {
  const ofRun = `thread_id = ${sql.threadId} and run_id = ${sql.runId}`;
  return `select caller, attempt > 1 and (exists (select from threadloom.model_usage where ${ofRun})
    or coalesce(${sql.runId} = (select run_id from threadloom.checkpoints
      where thread_id = ${sql.threadId} and checkpoint_ns = '' order by checkpoint_id desc limit 1), false)) as has_begun
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
  const usedOf = async ({ per, every }: Budget, name: string): Promise<Used> => {
    const sums = per === "caller" ? OF_CALLER : OF_ASSISTANT;
    const [used] = await sums.query<Used>(database, { name, every });
    return used ?? { tokens: 0, cost: 0 };
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
