/** A socket takes shorter answers at once. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;

/** One answer's part of the memory for large answers. Without one, a reader reads everything at once. */
export interface ReadBudget {
  /** Await it before reading about `bytes`. Rejects if there is no room, or if the caller has left. */
  reserve(bytes: number): Promise<void>;
}
