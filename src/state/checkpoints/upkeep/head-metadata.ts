import type { Queryable } from "../../../platform/database/database.ts";
import { MERGED_BYTES_AT_MOST, metadataTooLarge } from "../../../platform/database/merging.ts";
import { invalid } from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { encode, treeText } from "../../values/encoding.ts";
import { isReservedMetadata } from "../rows/metadata.ts";
import { toJsonb } from "../../../platform/lib/jsonb.ts";

const LOCK_HEAD = `
select c.checkpoint_id, coalesce(c.metadata_text, (s.metadata || c.metadata)::text) as metadata
from threadloom.checkpoints c join threadloom.checkpoint_shapes s on s.hash = c.shape
where c.thread_id = $1::uuid and c.checkpoint_ns = ''
order by c.checkpoint_id desc limit 1 for update of c`;

const REPLACE_METADATA = `
update threadloom.checkpoints set metadata = $3::jsonb, metadata_text = $4
where thread_id = $1::uuid and checkpoint_ns = '' and checkpoint_id = $2::uuid`;

/**
 * Call it in a transaction, because it locks the checkpoint. Throws `invalid` for reserved keys, and if the metadata
 * would grow too large.
 */
export const mergeHeadMetadata = async (
  queryable: Queryable,
  threadId: string,
  metadata: JsonObject,
): Promise<string | undefined> => {
  const rows = await queryable.query<{ checkpoint_id: string; metadata: string }>(LOCK_HEAD, [threadId]);
  const [head] = rows;
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
  await queryable.query(REPLACE_METADATA, [threadId, head.checkpoint_id, jsonb, exact ?? null]);
  return head.checkpoint_id;
};
