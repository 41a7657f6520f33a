import { invalid } from "../domain/errors.ts";

/**
 * Bytes of JSON text that metadata and configurations may grow to by merging: twice what one request may bring. There
 * may be any number of requests; and each run of a thread, each version of an assistant copies them all, each page of
 * threads sends them: 16 runs that brought 0.9 MB of new keys each were 122 MB.
 */
export const MERGED_BYTES_AT_MOST = 2_000_000;

/**
 * SQL: whether there is room for a `jsonb` that was put together from others. What is long without being text is not
 * written as text first: a number takes 12 bytes, but has up to 309 digits.
 */
export const hasRoomFor = (merged: string): string => `case
  when pg_column_size(${merged}) <= ${MERGED_BYTES_AT_MOST} then octet_length((${merged})::text) <= ${MERGED_BYTES_AT_MOST}
  else false end`;

export const metadataTooLarge = () =>
  invalid(`'metadata': with what is there already these would be more than ${MERGED_BYTES_AT_MOST} bytes.`);
