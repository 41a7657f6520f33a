/**
 * Large contents move to the object store after they are stored, so a run never waits for it. Before each upload, and
 * when a content is deleted, the object is noted as unused. So a process may die at any point.
 */

import { createHash } from "node:crypto";
import type { Database, Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { ObjectStore } from "../../platform/database/object-store.ts";
import { ENCRYPTED_PREFIX, isEncrypted } from "../../platform/encryption/cipher.ts";
import { ObjectStoreError, StartError } from "../../platform/domain/errors.ts";
import { LARGE_STRING_CHARACTERS } from "../values/large-strings.ts";

/** Of one statement. */
const CONTENTS_AT_ONCE = 8;
/** One object may be refused for its size; two in a row say that the store is away. */
const FAILURES_IN_A_ROW = 2;
/** Longer than an upload with its retries. */
const ON_THEIR_WAY = "10 minutes";

/** A content that a server has not moved in time is free for others. Index: unused_objects_on_their_way. */
const FREE_CLAIMS = statement(
  {},
  () => `update threadloom.unused_objects set hash = null
  where hash is not null and since < now() - interval '${ON_THEIR_WAY}'`,
);

/** Each content is claimed by one server. Index: checkpoint_contents_large. */
const CLAIM = statement(
  {},
  () => `insert into threadloom.unused_objects (thread_id, object_id, hash)
select c.thread_id, gen_random_uuid(), c.hash from threadloom.checkpoint_contents c
where octet_length(c.content) >= ${LARGE_STRING_CHARACTERS} and not exists (
  select from threadloom.unused_objects u where u.thread_id = c.thread_id and u.hash = c.hash)
limit ${CONTENTS_AT_ONCE}
on conflict do nothing
returning thread_id as "threadId", object_id as "objectId", hash`,
);

const RELEASE = statement(
  { objectIds: "uuid[]" },
  (sql) =>
    `delete from threadloom.unused_objects where object_id = any(${sql.objectIds}) and hash is not null`,
);

const READ = statement(
  { threadId: "uuid", hash: "uuid" },
  (sql) => `select content from threadloom.checkpoint_contents
  where thread_id = ${sql.threadId} and hash = ${sql.hash} and object_id is null`,
);

/** Does nothing if the content has changed, or if a sweep took the object for unused. */
const STORE = statement(
  { threadId: "uuid", hash: "uuid", objectId: "uuid", head: "text", digest: "text", before: "uuid" },
  (sql) => `
with noted as (
  select object_id from threadloom.unused_objects
  where thread_id = ${sql.threadId} and object_id = ${sql.objectId} and not removing for update
),
moved as (
  update threadloom.checkpoint_contents c
  set content = ${sql.head}, object_id = noted.object_id,
    object_bytes = coalesce(c.object_bytes, octet_length(c.content))
  from noted
  where c.thread_id = ${sql.threadId} and c.hash = ${sql.hash} and c.object_id is not distinct from ${sql.before}
    and (c.object_id is not null or encode(sha256(convert_to(c.content, 'UTF8')), 'hex') = ${sql.digest})
  returning c.object_id
),
unused as (
  insert into threadloom.unused_objects (thread_id, object_id)
  select ${sql.threadId}, ${sql.before} from moved where ${sql.before} is not null
)
delete from threadloom.unused_objects u using moved
where u.thread_id = ${sql.threadId} and u.object_id = moved.object_id
returning u.object_id`,
);

const NOTE = statement(
  { threadId: "uuid", hash: "uuid" },
  (sql) => `insert into threadloom.unused_objects (thread_id, object_id, hash)
  values (${sql.threadId}, gen_random_uuid(), ${sql.hash})
  on conflict do nothing returning object_id as "objectId"`,
);

const IS_USED = statement(
  {},
  () => `select 1 from threadloom.checkpoint_contents where object_id is not null limit 1`,
);

/** A server without the object store could not read these states. @throws StartError */
export const assertObjectStore = async (database: Database): Promise<void> => {
  if (database.objects !== undefined) return;
  if ((await IS_USED.query(database, {})).length === 0) return;
  throw new StartError(
    "The server refuses to start: large values of this database are in an object store, and OBJECT_STORE_URL is not set.",
  );
};

interface MovedContent {
  threadId: string;
  hash: string;
  objectId: string;
}

/** What stays in the row: the prefix and the id of the key with which the object is encrypted. */
export const headOf = (text: string): string =>
  isEncrypted(text) ? text.slice(0, text.indexOf(":", ENCRYPTED_PREFIX.length) + 1) : "";

/** False: the content is gone or was changed meanwhile. */
const upload = async (
  database: Pick<Queryable, "query">,
  objects: ObjectStore,
  { threadId, hash, objectId }: MovedContent,
  text: string,
  { before, signal }: { before?: string; signal?: AbortSignal | undefined } = {},
): Promise<boolean> => {
  await objects.write(objectId, text, signal);
  const digest = createHash("sha256").update(text).digest("hex");
  const source = { threadId, hash, objectId, head: headOf(text), digest, before };
  return (await STORE.query(database, source)).length > 0;
};

/**
 * Moves all large contents of the database to the object store, and returns their number. A failed upload may have
 * stored its object, so the claim stays until others may take it.
 */
export const moveLargeContents = async (
  database: Database,
  objects: ObjectStore,
  signal?: AbortSignal,
): Promise<number> => {
  let moved = 0;
  let fault: ObjectStoreError | undefined;
  await FREE_CLAIMS.query(database, {});
  while (signal?.aborted !== true) {
    const claimed = await CLAIM.query<MovedContent>(database, {});
    let failures = 0;
    for (const [index, content] of claimed.entries()) {
      const [row] = await READ.query<{ content: string }>(database, content);
      try {
        if (row !== undefined && (await upload(database, objects, content, row.content, { signal })))
          moved += 1;
        failures = 0;
      } catch (error) {
        if (!(error instanceof ObjectStoreError)) throw error;
        fault = error;
        failures += 1;
        if (failures < FAILURES_IN_A_ROW) continue;
        await RELEASE.query(database, {
          objectIds: claimed.slice(index + 1).map(({ objectId }) => objectId),
        });
        throw error;
      }
    }
    if (claimed.length < CONTENTS_AT_ONCE) break;
  }
  if (fault !== undefined) throw fault;
  return moved;
};

/** Gives an object another text, such as one with another key. False: the content is gone or was changed meanwhile. */
export const replaceObject = async (
  database: Pick<Queryable, "query">,
  objects: ObjectStore,
  { threadId, hash, objectId }: MovedContent,
  text: string,
): Promise<boolean> => {
  const [noted] = await NOTE.query<{ objectId: string }>(database, { threadId, hash });
  return (
    noted !== undefined &&
    (await upload(database, objects, { threadId, hash, ...noted }, text, { before: objectId }))
  );
};
