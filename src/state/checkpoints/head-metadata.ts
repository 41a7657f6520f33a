import type { Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { MERGED_BYTES_AT_MOST, metadataTooLarge } from "../../platform/database/merging.ts";
import { invalid } from "../../platform/domain/errors.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { encode, treeText } from "../values/encoding.ts";
import { isReservedMetadata } from "./metadata.ts";
import { METADATA_OF_C, NAMES_OF_C } from "./names.ts";
import { toJsonb } from "../../platform/lib/jsonb.ts";

const LOCK_HEAD = statement(
  { threadId: "uuid" },
  (sql) => `
select c.checkpoint_id, coalesce(c.metadata_text, ${METADATA_OF_C}::text) as metadata
from threadloom.checkpoints c ${NAMES_OF_C}
where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ''
order by c.seq desc limit 1 for update of c`,
);

const REPLACE_METADATA = statement(
  { threadId: "uuid", checkpointId: "uuid", jsonb: "jsonb", exact: "text" },
  (sql) => `
update threadloom.checkpoints set metadata = ${sql.jsonb}, metadata_text = ${sql.exact}
where thread_id = ${sql.threadId} and checkpoint_ns = '' and checkpoint_id = ${sql.checkpointId}`,
);

/**
 * Locks the checkpoint, so call this in a transaction. Throws `invalid` for reserved keys, and if the metadata would
 * grow too large.
 */
export const mergeHeadMetadata = async (
  queryable: Queryable,
  threadId: string,
  metadata: JsonObject,
): Promise<string | undefined> => {
  const [head] = await LOCK_HEAD.query<{ checkpoint_id: string; metadata: string }>(queryable, { threadId });
  if (head === undefined) return undefined;
  const reserved = Object.keys(metadata).find(isReservedMetadata);
  if (reserved !== undefined) throw invalid(`'metadata': the key '${reserved}' is reserved.`);
  const given = encode(metadata) as JsonObject;
  const key = { checkpoint_ns: "", checkpoint_id: head.checkpoint_id };
  // Stored values stay as they are, encrypted or not.
  const merged = {
    ...(JSON.parse(head.metadata) as JsonObject),
    ...queryable.encryption.encryptedMetadata(given, key),
  };
  const text = treeText(merged);
  if (Buffer.byteLength(text) > MERGED_BYTES_AT_MOST) throw metadataTooLarge();
  const { jsonb, exact } = toJsonb(text);
  await REPLACE_METADATA.query(queryable, { threadId, checkpointId: head.checkpoint_id, jsonb, exact });
  return head.checkpoint_id;
};
