import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { NewShape } from "../rows/new-rows.ts";

/** Ordered, so that concurrent inserts of the same shapes don't deadlock. */
const STORE_SHAPES = statement(
  { hashes: "uuid[]", shapes: "text[]", metadata: "text[]" },
  (sql) => `insert into threadloom.checkpoint_shapes (hash, shape, metadata)
  select hash, shape, metadata::jsonb from unnest(${sql.hashes}, ${sql.shapes}, ${sql.metadata}) as s (hash, shape, metadata)
  order by hash on conflict do nothing`,
);

/**
 * Runs before the statement of the checkpoints, and waits for the disk. All threads share shapes, so a graph's shape
 * costs one statement, not one per run.
 */
export const storeShapes = async (queryable: Queryable, shapes: readonly NewShape[]): Promise<void> => {
  if (shapes.length === 0) return;
  const distinct = [...new Map(shapes.map((shape) => [shape.hash, shape])).values()];
  await STORE_SHAPES.query(queryable, {
    hashes: distinct.map((shape) => shape.hash),
    shapes: distinct.map((shape) => shape.text),
    metadata: distinct.map((shape) => shape.metadata),
  });
};
