/** The server counts answers from this size on. A socket takes shorter ones at once. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;

/** Reserves room for `bytes` before a large value is read. Resolves when there is room to answer the value. */
export type WhenLarge = (bytes: number) => Promise<void>;
