import type { Queryable } from "../../../platform/database/database.ts";
import type { NewShape } from "../rows/new-rows.ts";

/** Ordered, so that concurrent inserts of the same shapes don't deadlock. */
const STORE_SHAPES = `insert into threadloom.checkpoint_shapes (hash, shape, metadata)
  select hash, shape, metadata::jsonb from unnest($1::uuid[], $2::text[], $3::text[]) as s (hash, shape, metadata)
  order by hash on conflict do nothing`;

/**
 * Runs before the statement of the checkpoints, and waits for the disk. Shapes are common to all threads: one statement
 * per shape of a graph, not per run.
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
