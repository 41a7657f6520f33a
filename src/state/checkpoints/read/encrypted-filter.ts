import type { Queryable } from "../../../platform/database/database.ts";
import { notSearchable } from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";

/** Undefined: all threads, all namespaces. */
interface MetadataFilter {
  threadId: string | undefined;
  checkpointNs: string | undefined;
  metadata?: JsonObject;
}

/** A key is encrypted where a config gave it, and may be open metadata in the next run. Index: checkpoints_pkey. */
const encryptedKey = (
  conditions: string,
): string => `select wanted.key from unnest($1::text[]) as wanted (key)
  where exists (select from threadloom.checkpoints c where ${conditions} and c.metadata ->> wanted.key like 'enc1:%')
  limit 1`;

/** Throws `invalid`, because the filter would skip checkpoints with an encrypted value. */
export const assertFilterOpen = async (queryable: Queryable, filter: MetadataFilter): Promise<void> => {
  const keys = Object.keys(filter.metadata ?? {});
  if (!queryable.encryption.isOn || keys.length === 0) return;
  const values: unknown[] = [keys];
  const conditions = ["true"];
  if (filter.threadId !== undefined) conditions.push(`c.thread_id = $${values.push(filter.threadId)}::uuid`);
  if (filter.checkpointNs !== undefined)
    conditions.push(`c.checkpoint_ns = $${values.push(filter.checkpointNs)}::text`);
  const [found] = await queryable.query<{ key: string }>(encryptedKey(conditions.join(" and ")), values);
  if (found !== undefined) throw notSearchable(found.key);
};
