import { invalid } from "../domain/errors.ts";
import { METADATA_ELEMENTS_AT_MOST } from "../domain/json-schemas.ts";

/**
 * Twice the limit of one request. Each run and assistant version copies the JSON: 16 runs with 0.9 MB of new keys each
 * made 122 MB.
 */
export const MERGED_BYTES_AT_MOST = 2_000_000;

/** SQL for columns of `json`: the last object's members win, and come last. */
export const mergedJson = (...objects: readonly [string, string, ...string[]]): string =>
  objects.reduce((low, high) => `threadloom.merge_json(${low}, ${high})`);

const MERGED_ELEMENTS_AT_MOST = 2 * METADATA_ELEMENTS_AT_MOST;
/** A list item takes at least four bytes, so smaller metadata need no count. */
const BYTES_OF_FEW = 4 * MERGED_ELEMENTS_AT_MOST;

/** SQL. The text counts too, because a number of 12 stored bytes may have 309 digits. */
export const hasRoomForMetadata = (merged: string): string => `case
  when pg_column_size(${merged}) <= ${BYTES_OF_FEW} then true
  when pg_column_size(${merged}) > ${MERGED_BYTES_AT_MOST} then false
  when octet_length((${merged})::text) <= ${MERGED_BYTES_AT_MOST}
    then (select count(*) from jsonb_path_query(${merged}, 'strict $.**')) <= ${MERGED_ELEMENTS_AT_MOST + 1}
  else false end`;

export const metadataTooLarge = () =>
  invalid(
    `'metadata': merged with the stored metadata this would be more than ${MERGED_BYTES_AT_MOST} bytes or ${MERGED_ELEMENTS_AT_MOST} elements.`,
  );
