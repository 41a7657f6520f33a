/** A socket takes shorter answers at once. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;

/**
 * One answer's share of the memory for large answers. Without a budget, a reader reads everything at once. An
 * implementation may count answers instead of bytes (api/threads/long-answers.ts).
 */
export interface ReadBudget {
  /** Await this before reading about `bytes`. Rejects if there is no room, or if the caller has left. */
  reserve(bytes: number): Promise<void>;
}
