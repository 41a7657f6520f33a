import { invalid } from "../lib/errors.ts";

/**
 * Bytes that metadata and configurations may grow to by merging. One request brings a million characters of each at
 * most, but there may be any number of requests; and each run of a thread, each version of an assistant copies them all:
 * 16 runs that brought 0.9 MB of new keys each were 122 MB.
 */
export const MERGED_BYTES_AT_MOST = 8_000_000;

/** SQL: whether there is room for a `jsonb` that was put together from others. */
export const hasRoomFor = (merged: string): string => `pg_column_size(${merged}) <= ${MERGED_BYTES_AT_MOST}`;

export const metadataTooLarge = () =>
  invalid(`'metadata': with what is there already these would be more than ${MERGED_BYTES_AT_MOST} bytes.`);
