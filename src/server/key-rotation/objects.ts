import { retryPassing } from "../../platform/database/passing-faults.ts";
import { statement } from "../../platform/database/statement.ts";
import { EncryptionError, StartError, StateStorageError } from "../../platform/domain/errors.ts";
import { createEncryption } from "../../platform/encryption/encryption.ts";
import { ENCRYPTED_PREFIX } from "../../platform/encryption/cipher.ts";
import { replaceObject } from "../../state/checkpoints/upkeep/objects.ts";
import type { TableCount, WalkOptions } from "./key-use.ts";

const ROWS_AT_ONCE = 100;
const RETRY_MS = 30_000;
const FIRST = "00000000-0000-0000-0000-000000000000";

/** Index: checkpoint_contents_by_object. */
const PAGE = statement(
  { objectAfter: "uuid", threadAfter: "uuid", hashAfter: "uuid" },
  (sql) => `select thread_id as "threadId", hash, object_id as "objectId", content as head
  from threadloom.checkpoint_contents
  where object_id is not null
    and (object_id, thread_id, hash) > (${sql.objectAfter}, ${sql.threadAfter}, ${sql.hashAfter})
  order by object_id, thread_id, hash limit ${ROWS_AT_ONCE}`,
);

interface Row {
  threadId: string;
  hash: string;
  objectId: string;
  head: string;
}

/** Counts the contents in the object store by their keys. `writes`: stores them with the newest key. */
export const walkObjects = async (
  { database, cipher, writes, onProgress }: WalkOptions,
  count: TableCount,
): Promise<void> => {
  const { objects } = database;
  const encryption = createEncryption(cipher);
  const take = async ({ head, ...row }: Row): Promise<void> => {
    const id = head === "" ? undefined : head.slice(ENCRYPTED_PREFIX.length, -1);
    if (id !== undefined && !cipher.keyIds.includes(id)) {
      count.byMissingKey.set(id, (count.byMissingKey.get(id) ?? 0) + 1);
      return;
    }
    if (id === undefined) count.plain += 1;
    else count.byKey.set(id, (count.byKey.get(id) ?? 0) + 1);
    if (!writes || id === cipher.keyId) return;
    if (objects === undefined) throw new StartError("Values are in an object store: set OBJECT_STORE_URL.");
    try {
      const text = encryption.reencrypted(
        "checkpoint_contents",
        "content",
        await objects.read(row.objectId),
        row,
      );
      if (await replaceObject(database, objects, row, text)) count.reencrypted += 1;
      else count.busy += 1;
    } catch (error) {
      if (!(error instanceof EncryptionError || error instanceof StateStorageError)) throw error;
      count.unreadable += 1;
    }
  };
  const query = (source: Parameters<typeof PAGE.query>[1]): Promise<Row[]> =>
    retryPassing(() => PAGE.query<Row>(database, source), { forMs: RETRY_MS });
  let last: Row = { objectId: FIRST, threadId: FIRST, hash: FIRST, head: "" };
  for (;;) {
    const { objectId: objectAfter, threadId: threadAfter, hash: hashAfter } = last;
    const rows = await query({ objectAfter, threadAfter, hashAfter });
    for (const row of rows) await take(row);
    count.rows += rows.length;
    onProgress?.(count);
    if (rows.length < ROWS_AT_ONCE) return;
    last = rows.at(-1)!;
  }
};
