import type { ModelUsage } from "../project/usage.ts";

/** Tokens of all calls of one model. */
export interface SummedUsage extends ModelUsage {
  calls: number;
}

/** Names come from answers, so a run may have as many as it has calls. */
const MODELS_AT_MOST = 100;
const OTHER_MODELS = "other models";

/** Sums usage by model, because a run may call models more often than its records are handed over. */
export class UsageSums {
  #known: Set<string> | undefined;
  #sums: Map<string, SummedUsage> | undefined;

  #nameOf(model: string): string {
    const known = (this.#known ??= new Set());
    if (known.size < MODELS_AT_MOST) known.add(model);
    return known.has(model) ? model : OTHER_MODELS;
  }

  add(used: SummedUsage): void {
    const model = this.#nameOf(used.model);
    const sums = (this.#sums ??= new Map());
    const sum = sums.get(model);
    if (sum === undefined) {
      sums.set(model, { ...used, model });
      return;
    }
    sum.calls += used.calls;
    sum.input_tokens += used.input_tokens;
    sum.output_tokens += used.output_tokens;
    sum.cache_read_tokens += used.cache_read_tokens;
    sum.cache_creation_tokens += used.cache_creation_tokens;
    sum.reasoning_tokens += used.reasoning_tokens;
  }

  /** The sums since the last call. */
  take(): SummedUsage[] {
    const taken = this.#sums === undefined ? [] : [...this.#sums.values()];
    this.#sums = undefined;
    return taken;
  }
}
