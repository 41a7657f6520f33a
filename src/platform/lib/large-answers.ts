/** A socket takes shorter answers at once. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;

/** Resolves when there is room to answer a value of that size. */
export type WhenLarge = (bytes: number) => Promise<void>;
