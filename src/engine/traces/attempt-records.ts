import type { TraceRecords } from "../../graphs/trace/recorder.ts";
import type { ModelUsage } from "../../graphs/trace/scope.ts";
import { logFailure } from "../../platform/database/outages.ts";
import { retryPassing } from "../../platform/database/passing-faults.ts";
import type { ServerMetrics } from "../../platform/metrics/metrics.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { RecordsOptions } from "../executors/recording.ts";
import type { AttemptRecords, AttemptSelector, PricedUsage } from "../queue/attempts.ts";

/** Of which runs the spans are stored. `errors`: those that end with an error or a time-out. */
export type TracedRuns = "all" | "errors" | "off";

export interface AttemptRecordsParts {
  traces: TracedRuns;
  costOf(usage: ModelUsage): number | undefined;
  /** Does nothing if the run is gone. */
  store(attempt: AttemptSelector, records: AttemptRecords): Promise<void>;
  metrics: Pick<ServerMetrics, "modelCall" | "toolCall" | "tokensUsed">;
  logger: Logger;
}

/** Longer than a failover. */
const STORED_WITHIN_MS = 30_000;

/** `cost`: undefined if no model has a price. */
export interface UsageTotal {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cost: number | undefined;
}

const byModel = (
  usage: readonly ModelUsage[],
  costOf: AttemptRecordsParts["costOf"],
): readonly PricedUsage[] => {
  const sums = new Map<string, PricedUsage>();
  for (const used of usage) {
    const cost = costOf(used);
    const sum = sums.get(used.model);
    if (sum === undefined) {
      sums.set(used.model, { ...used, calls: 1, cost });
      continue;
    }
    sum.calls += 1;
    sum.input_tokens += used.input_tokens;
    sum.output_tokens += used.output_tokens;
    sum.cache_read_tokens += used.cache_read_tokens;
    sum.cache_creation_tokens += used.cache_creation_tokens;
    sum.reasoning_tokens += used.reasoning_tokens;
    if (cost !== undefined) sum.cost = (sum.cost ?? 0) + cost;
  }
  return [...sums.values()];
};

/** Stores the records of one attempt: those of a long one in parts, the last part with the end of the run. */
export const createAttemptRecords = (
  { traces, costOf, store, metrics, logger }: AttemptRecordsParts,
  attempt: AttemptSelector,
) => {
  const startedAt = new Date();
  const total: UsageTotal = { calls: 0, input_tokens: 0, output_tokens: 0, cost: undefined };
  let part = 0;
  let spans: string[] = [];
  let usage: ModelUsage[] = [];
  let last: AttemptRecords | undefined;
  let isOver = false;
  let storing: Promise<void> = Promise.resolve();

  /** The waiting records; undefined if there are none. */
  const take = (withSpans: boolean): AttemptRecords | undefined => {
    const text = withSpans && spans.length > 0 ? spans.join(",") : null;
    if (text === null && usage.length === 0) return undefined;
    const records = { part, startedAt, spans: text, usage: byModel(usage, costOf) };
    part += 1;
    if (text !== null) spans = [];
    usage = [];
    return records;
  };

  /** A part that can't be stored is lost: the run is worth more than its trace. */
  const storeSoon = (records: AttemptRecords): void => {
    storing = storing
      .then(() => retryPassing(() => store(attempt, records), { forMs: STORED_WITHIN_MS }))
      .catch(logFailure(logger, "a part of a run's trace could not be stored"));
  };
  const storeNow = (): void => {
    const records = take(traces === "all");
    if (records !== undefined) storeSoon(records);
  };

  const onRecords = (records: TraceRecords, isLast: boolean): void => {
    if (isOver) return;
    for (const { kind, name, seconds, failed } of records.calls)
      if (kind === "tool") metrics.toolCall({ tool: name, seconds, failed });
      else metrics.modelCall({ model: name, seconds, failed });
    if (records.spans !== "") spans.push(records.spans);
    for (const used of records.usage) {
      usage.push(used);
      metrics.tokensUsed(used.model, used.input_tokens, used.output_tokens);
      total.calls += 1;
      total.input_tokens += used.input_tokens;
      total.output_tokens += used.output_tokens;
      const cost = costOf(used);
      if (cost !== undefined) total.cost = (total.cost ?? 0) + cost;
    }
    if (!isLast) storeNow();
  };

  return {
    options: { keepsSpans: traces !== "off", onRecords } satisfies RecordsOptions,

    /** Of the whole attempt. */
    total: total as Readonly<UsageTotal>,

    /** What the statement that ends the run has to store. Later records are dropped. */
    last(status: "success" | "error" | "timeout" | "interrupted"): AttemptRecords | undefined {
      isOver = true;
      last = take(traces === "all" || (traces === "errors" && (status === "error" || status === "timeout")));
      return last;
    },

    /** The statement has stored what `last` returned. */
    lastIsStored(): void {
      last = undefined;
    },

    /** Stores what waits when the attempt does not end the run. Never rejects. */
    async leave(): Promise<void> {
      isOver = true;
      if (last !== undefined) storeSoon(last);
      last = undefined;
      storeNow();
      await storing;
    },
  };
};

export type RunRecords = ReturnType<typeof createAttemptRecords>;
