/** Answers from this size on are counted; a socket takes shorter ones at once. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;

/** Told the bytes of something large before it is read; resolves when there is room to answer it. */
export type WhenLarge = (bytes: number) => Promise<void>;
