import type { Database } from "../../platform/database/database.ts";
import type { ObjectStore } from "../../platform/database/object-store.ts";
import { logFailure } from "../../platform/database/outages.ts";
import { statement } from "../../platform/database/statement.ts";
import { ObjectStoreError } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import { moveLargeContents } from "./objects.ts";

const OBJECTS_AT_ONCE = 100;
/** A reader that has just read the row may still ask for the object. */
const UNUSED_FOR = "1 hour";

/** Index: unused_objects_by_age. */
const FIND_OLD = statement(
  {},
  () => `select thread_id as "threadId", object_id as "objectId" from threadloom.unused_objects
  where since < now() - interval '${UNUSED_FOR}' order by since limit ${OBJECTS_AT_ONCE}`,
);

/** Copies of a thread share its objects. Index: checkpoint_contents_by_object. */
const FIND_USED = statement(
  { objectIds: "uuid[]" },
  (sql) => `select distinct object_id as "objectId" from threadloom.checkpoint_contents
  where object_id = any(${sql.objectIds})`,
);

/** No row refers to the objects, so no copy will. Returns those that no upload has just finished. */
const MARK = statement(
  { objectIds: "uuid[]" },
  (sql) => `update threadloom.unused_objects set removing = true where object_id = any(${sql.objectIds})
  returning thread_id as "threadId", object_id as "objectId"`,
);

/** Keeps newer notes: the last row of an object may have been deleted a moment ago. */
const FORGET_USED = statement(
  { objectIds: "uuid[]" },
  (sql) => `delete from threadloom.unused_objects
  where object_id = any(${sql.objectIds}) and since < now() - interval '${UNUSED_FOR}'`,
);

const FORGET_REMOVED = statement(
  { threadId: "uuid", objectId: "uuid" },
  (sql) => `delete from threadloom.unused_objects
  where thread_id = ${sql.threadId} and object_id = ${sql.objectId} and removing`,
);

interface UnusedObject {
  threadId: string;
  objectId: string;
}

/** Removes objects that no row has needed for an hour. Returns their number. */
export const removeUnusedObjects = async (
  database: Database,
  objects: ObjectStore,
  signal?: AbortSignal,
): Promise<number> => {
  let removed = 0;
  while (signal?.aborted !== true) {
    const old = await FIND_OLD.query<UnusedObject>(database, {});
    if (old.length === 0) break;
    const objectIds = old.map(({ objectId }) => objectId);
    const used = await FIND_USED.query<{ objectId: string }>(database, { objectIds });
    const usedIds = new Set(used.map(({ objectId }) => objectId));
    const unused = old.filter(({ objectId }) => !usedIds.has(objectId));
    const unusedIds = unused.map(({ objectId }) => objectId);
    for (const object of await MARK.query<UnusedObject>(database, { objectIds: unusedIds })) {
      await objects.remove(object.objectId, signal);
      await FORGET_REMOVED.query(database, object);
      removed += 1;
    }
    await FORGET_USED.query(database, { objectIds: [...usedIds] });
  }
  return removed;
};

const MOVE_EVERY_MS = 5_000;
const REMOVE_EVERY_MS = 600_000;
/** Each try leaves a note of an unused object. */
const REST_MS = 30_000;

/** Moves contents and removes unused objects, until it is closed. Every server may do it. */
export const startMovingContents = (
  database: Database,
  objects: ObjectStore,
  logger: Logger,
): { close(): Promise<void> } => {
  const closing = new AbortController();
  const { signal } = closing;
  /** After a failure of the object store. */
  let restsUntil: number | undefined;
  const resting =
    (work: () => Promise<number>): (() => Promise<void>) =>
    async () => {
      if (restsUntil !== undefined && performance.now() < restsUntil) return;
      try {
        const count = await work();
        if (restsUntil !== undefined && count > 0) logger.info("the object store is back again");
        restsUntil = undefined;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof ObjectStoreError)) throw error;
        const reason = `${error.message} ${error.cause instanceof Error ? error.cause.message : ""}`.trim();
        if (restsUntil === undefined)
          logger.error(
            { reason },
            "the object store is away, or refuses this server; new values stay in the database",
          );
        restsUntil = performance.now() + REST_MS;
      }
    };
  const periodic = [
    startPeriodic({
      everyMs: MOVE_EVERY_MS,
      work: resting(() => moveLargeContents(database, objects, signal)),
      onError: logFailure(logger, "large values could not be moved to the object store"),
    }),
    startPeriodic({
      everyMs: REMOVE_EVERY_MS,
      work: resting(() => removeUnusedObjects(database, objects, signal)),
      onError: logFailure(logger, "unused objects could not be removed from the object store"),
    }),
  ];
  return {
    async close() {
      closing.abort();
      await Promise.all(periodic.map((each) => each.close()));
    },
  };
};
