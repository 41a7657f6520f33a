import { invalid } from "../domain/errors.ts";
import { METADATA_ELEMENTS_AT_MOST } from "../domain/json-schemas.ts";

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

/** Elements that metadata may grow to: twice what one request may bring. */
export const MERGED_ELEMENTS_AT_MOST = 2 * METADATA_ELEMENTS_AT_MOST;
/** An item of a list takes four bytes at least: no metadata of so few bytes have too many. */
const BYTES_OF_FEW = 4 * MERGED_ELEMENTS_AT_MOST;

/** SQL: the same for metadata, whose elements are counted where they may be many. */
export const hasRoomForMetadata = (merged: string): string => `case
  when pg_column_size(${merged}) <= ${BYTES_OF_FEW} then true
  when ${hasRoomFor(merged)}
    then (select count(*) from jsonb_path_query(${merged}, 'strict $.**')) <= ${MERGED_ELEMENTS_AT_MOST + 1}
  else false end`;

export const metadataTooLarge = () =>
  invalid(
    `'metadata': with what is there already these would be more than ${MERGED_BYTES_AT_MOST} bytes or ${MERGED_ELEMENTS_AT_MOST} elements.`,
  );
