export interface TokenCounts {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_creation_tokens: number;
  reasoning_tokens: number;
}

/** Times are milliseconds since the attempt began. */
export interface Span {
  id: number;
  parent: number | null;
  kind: "node" | "model" | "tool";
  name: string;
  start_ms: number;
  /** Null: not known, or not yet. */
  end_ms: number | null;
  status: "running" | "success" | "error" | "interrupted" | "lost";
  error?: { type: string; message: string; at?: string };
  model?: string;
  provider?: string;
  first_token_ms?: number;
  stop_reason?: string;
  usage?: TokenCounts;
  tool_call_id?: string;
  arguments?: string;
  result?: string;
}

export interface Attempt {
  attempt: number;
  started_at: string | null;
  spans: Span[];
  dropped_spans: number;
}

export interface ModelUsage extends TokenCounts {
  model: string;
  calls: number;
  cost: number | null;
}

export interface Trace {
  run_id: string;
  thread_id: string;
  status: string;
  queue_ms: number | null;
  answered_after_ms: number | null;
  run_ms: number | null;
  attempts: Attempt[];
  usage: ModelUsage[];
}

/** Undefined: no model was called. */
export const sumOf = (usage: readonly ModelUsage[]): (TokenCounts & { cost: number | null }) | undefined => {
  if (usage.length === 0) return undefined;
  const sum = (field: keyof TokenCounts): number => usage.reduce((all, used) => all + used[field], 0);
  const costs = usage.flatMap(({ cost }) => (cost === null ? [] : [cost]));
  return {
    input_tokens: sum("input_tokens"),
    output_tokens: sum("output_tokens"),
    cache_read_tokens: sum("cache_read_tokens"),
    cache_creation_tokens: sum("cache_creation_tokens"),
    reasoning_tokens: sum("reasoning_tokens"),
    cost: costs.length === 0 ? null : costs.reduce((all, cost) => all + cost, 0),
  };
};

const significant = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

export const costText = (cost: number, currency: string | undefined): string =>
  currency === undefined ? significant.format(cost) : `${significant.format(cost)} ${currency}`;
