import { z } from "zod";

/** Tokens of one call, as the model reported them. */
export interface ModelUsage {
  model: string;
  input_tokens: number;
  output_tokens: number;
  /** Of the input: read from, and written to, the provider's cache. */
  cache_read_tokens: number;
  cache_creation_tokens: number;
  /** Of the output. */
  reasoning_tokens: number;
}

/** Money per million tokens, in the project's currency. */
export interface Price {
  input: number;
  output: number;
  /** Of input tokens from the provider's cache. */
  cache_read: number;
  /** Of input tokens that the provider stores in its cache. */
  cache_creation: number;
}

/** A limit for each caller, or for each assistant. */
export interface Budget {
  per: "caller" | "assistant";
  /** Of UTC. */
  every: "day" | "month";
  /** Of input and output together; undefined: no limit. */
  tokens: number | undefined;
  /** Undefined: no limit. */
  cost: number | undefined;
}

/** `usage` of langgraph.json. Only data: `threadloom dev` compares it with what it was. */
export interface UsageConfig {
  readonly currency: string | undefined;
  readonly budgets: readonly Budget[];
  /** By the names of models. */
  readonly prices: ReadonlyMap<string, Price>;
}

/** So that sums stay numbers. */
const MONEY_AT_MOST = 1e12;

const amount = z.number().nonnegative().max(MONEY_AT_MOST);
const price = z
  .strictObject({
    input: amount,
    output: amount,
    cache_read: amount.nullish(),
    cache_creation: amount.nullish(),
  })
  .transform(({ input, output, cache_read, cache_creation }): Price => ({
    input,
    output,
    cache_read: cache_read ?? input,
    cache_creation: cache_creation ?? input,
  }));

const budget = z
  .strictObject({
    per: z.enum(["caller", "assistant"]),
    every: z.enum(["day", "month"]),
    tokens: z.number().int().nonnegative().nullish(),
    cost: amount.nullish(),
  })
  .refine(({ tokens, cost }) => tokens != null || cost != null, { error: "needs 'tokens' or 'cost'" })
  .transform(({ per, every, tokens, cost }): Budget => ({
    per,
    every,
    tokens: tokens ?? undefined,
    cost: cost ?? undefined,
  }));

export const usageSchema = z
  .strictObject({
    currency: z.string().min(1).max(20).nullish(),
    prices: z.record(z.string().min(1), price).nullish(),
    budgets: z.array(budget).nullish(),
  })
  .nullish();

const TOKENS_PER_PRICE = 1_000_000;

const moneyFor = (price: Price, usage: ModelUsage): number => {
  const { cache_read_tokens: read, cache_creation_tokens: created } = usage;
  const plain = Math.max(0, usage.input_tokens - read - created);
  const sum =
    plain * price.input +
    read * price.cache_read +
    created * price.cache_creation +
    usage.output_tokens * price.output;
  return sum / TOKENS_PER_PRICE;
};

export const usageConfigOf = (usage: z.output<typeof usageSchema>): UsageConfig => ({
  currency: usage?.currency ?? undefined,
  budgets: usage?.budgets ?? [],
  prices: new Map(Object.entries(usage?.prices ?? {})),
});

/**
 * The money for tokens of a model; undefined: the model has no price. A price is found by the model's name, or by the
 * longest name before a `-`: providers answer with dated versions, such as `gpt-5-2026-01-31`.
 */
export const costOf = ({ prices }: UsageConfig, used: ModelUsage): number | undefined => {
  for (let name = used.model; name !== ""; name = name.slice(0, Math.max(0, name.lastIndexOf("-")))) {
    const price = prices.get(name);
    if (price !== undefined) return moneyFor(price, used);
  }
  return undefined;
};
