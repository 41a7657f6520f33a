import type { Queryable } from "../../../platform/database/database.ts";
import { openRecord } from "../rows/encryption.ts";
import { SHAPE_OF_C, toNumbers, type CheckpointRow, type RawRow } from "./row-statements.ts";

/** For writers that know only a checkpoint's id. */
export type References = Pick<CheckpointRow, "record" | "segments" | "shape">;

type RawReferences = Pick<RawRow, "checkpoint_ns" | "checkpoint_id" | "record" | "segments" | "shape">;

const toReferences = (row: RawReferences, { encryption }: Queryable): References => ({
  record: openRecord(encryption, row.record, row),
  segments: toNumbers(row.segments),
  shape: row.shape,
});

const REFERENCES = `select c.checkpoint_ns, c.checkpoint_id, c.record, array_to_string(c.segments, ',') as segments, s.shape from threadloom.checkpoints c ${SHAPE_OF_C}`;

const READ_REFERENCES = `${REFERENCES}
  where c.thread_id = $1::uuid and c.checkpoint_ns = $2::text and c.checkpoint_id = $3::uuid`;

export const readReferences = async (
  queryable: Queryable,
  threadId: string,
  checkpointNs: string,
  checkpointId: string,
): Promise<References | undefined> => {
  const rows = await queryable.query<RawReferences>(READ_REFERENCES, [threadId, checkpointNs, checkpointId]);
  return rows[0] && toReferences(rows[0], queryable);
};

const READ_ALL_REFERENCES = `${REFERENCES}
  where c.thread_id = $1::uuid and c.checkpoint_ns = $2::text`;

export const readAllReferences = async (
  queryable: Queryable,
  threadId: string,
  checkpointNs: string,
): Promise<Array<References>> =>
  (await queryable.query<RawReferences>(READ_ALL_REFERENCES, [threadId, checkpointNs])).map((row) =>
    toReferences(row, queryable),
  );
