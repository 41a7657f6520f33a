/** Shapes of checkpoints, which are common to all threads and so are stored by a statement of their own. */

import type { Queryable } from "../../../platform/database/database.ts";
import type { NewShape } from "../rows/new-rows.ts";

/** In the order of the hashes, so that two that insert the same ones don't wait for each other. */
const STORE_SHAPES = `insert into threadloom.checkpoint_shapes (hash, shape, metadata)
  select hash, shape, metadata::jsonb from unnest($1::uuid[], $2::text[], $3::text[]) as s (hash, shape, metadata)
  order by hash on conflict do nothing`;

/**
 * Before the checkpoints that refer to them, and on the disk before them. Only what this process does not know to be
 * stored comes here, so this is one statement for each shape of a graph and not one for each run.
 */
export const storeShapes = async (queryable: Queryable, shapes: readonly NewShape[]): Promise<void> => {
  if (shapes.length === 0) return;
  const distinct = [...new Map(shapes.map((shape) => [shape.hash, shape])).values()];
  await queryable.query(STORE_SHAPES, [
    distinct.map((shape) => shape.hash),
    distinct.map((shape) => shape.text),
    distinct.map((shape) => shape.metadata),
  ]);
};
