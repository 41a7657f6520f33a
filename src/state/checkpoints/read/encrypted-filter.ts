import type { Queryable } from "../../../platform/database/database.ts";
import { fragment, statement } from "../../../platform/database/statement.ts";
import { notSearchable } from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";

/** Undefined: all threads, all namespaces. */
interface MetadataFilter {
  threadId: string | undefined;
  checkpointNs: string | undefined;
  metadata?: JsonObject;
}

export const inThread = (
  { threadId, checkpointNs }: Pick<MetadataFilter, "threadId" | "checkpointNs">,
  parameter: (value: unknown) => string,
): string =>
  [
    threadId === undefined ? "true" : `c.thread_id = ${parameter(threadId)}::uuid`,
    checkpointNs === undefined ? "true" : `c.checkpoint_ns = ${parameter(checkpointNs)}::text`,
  ].join(" and ");

/**
 * The value of a metadata key from a config is encrypted. The next run may store it unencrypted. Index: checkpoints_pkey.
 */
const FIND_ENCRYPTED_KEY = statement(
  { keys: "text[]", which: "fragment" },
  (sql) => `select wanted.key from unnest(${sql.keys}) as wanted (key)
  where exists (select from threadloom.checkpoints c where ${sql.which} and c.metadata ->> wanted.key like 'enc1:%')
  limit 1`,
);

/** Throws `invalid`, because the filter would skip checkpoints with an encrypted value. */
export const assertFilterOpen = async (queryable: Queryable, filter: MetadataFilter): Promise<void> => {
  const keys = Object.keys(filter.metadata ?? {});
  if (!queryable.encryption.isOn || keys.length === 0) return;
  const which = fragment((parameter) => inThread(filter, parameter));
  const [found] = await FIND_ENCRYPTED_KEY.query<{ key: string }>(queryable, { keys, which });
  if (found !== undefined) throw notSearchable(found.key);
};
