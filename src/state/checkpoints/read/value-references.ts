import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { openRecord } from "../rows/encryption.ts";
import { SHAPE_OF_C, toNumbers, type CheckpointRow, type RawRow } from "./row-statements.ts";

export type References = Pick<CheckpointRow, "record" | "segments" | "shape">;

type RawReferences = Pick<RawRow, "checkpoint_ns" | "checkpoint_id" | "record" | "segments" | "shape">;

const toReferences = (row: RawReferences, { encryption }: Queryable): References => ({
  record: openRecord(encryption, row.record, row),
  segments: toNumbers(row.segments),
  shape: row.shape,
});

const READ_REFERENCES = statement(
  { threadId: "uuid", checkpointNs: "text", checkpointId: "uuid" },
  (sql) => `
  select c.checkpoint_ns, c.checkpoint_id, c.record, array_to_string(c.segments, ',') as segments, s.shape
  from threadloom.checkpoints c ${SHAPE_OF_C}
  where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.checkpointNs} and c.checkpoint_id = ${sql.checkpointId}`,
);

export const readReferences = async (
  queryable: Queryable,
  threadId: string,
  checkpointNs: string,
  checkpointId: string,
): Promise<References | undefined> => {
  const rows = await READ_REFERENCES.query<RawReferences>(queryable, {
    threadId,
    checkpointNs,
    checkpointId,
  });
  return rows[0] && toReferences(rows[0], queryable);
};

const READ_ALL_REFERENCES = statement(
  { threadId: "uuid", checkpointNs: "text" },
  (sql) => `
  select c.checkpoint_ns, c.checkpoint_id, c.record, array_to_string(c.segments, ',') as segments, s.shape
  from threadloom.checkpoints c ${SHAPE_OF_C}
  where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.checkpointNs}`,
);

export const readAllReferences = async (
  queryable: Queryable,
  threadId: string,
  checkpointNs: string,
): Promise<Array<References>> =>
  (await READ_ALL_REFERENCES.query<RawReferences>(queryable, { threadId, checkpointNs })).map((row) =>
    toReferences(row, queryable),
  );
