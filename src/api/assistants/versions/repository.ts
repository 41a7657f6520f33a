import { sql } from "kysely";
import type { Permission, Visibility } from "../../../access/visibility.ts";
import { queriesOver } from "../../../platform/database/queries.ts";
import { whereVisible } from "../../../access/where-visible.ts";
import type { Database, Records } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { hasRoomForMetadata } from "../../../platform/database/merging.ts";
import type { AssistantRow } from "../../../platform/database/tables.ts";
import { ASSISTANT_PARAMETERS, COLUMNS, SNAPSHOT } from "../columns.ts";

export interface NewVersion {
  /** Undefined: the assistant keeps its graph. */
  graphId: string | undefined;
}

/**
 * Raw SQL for the CTE. Runs after `lock`: only a statement that starts after the wait for the lock sees another
 * transaction's version.
 */
const ADD_VERSION = statement(
  { ...ASSISTANT_PARAMETERS, visible: "fragment" },
  (sql) => `with snapshot as (
  insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")})
  select a.assistant_id, (select max(version) + 1 from threadloom.assistant_versions where assistant_id = ${sql.assistantId}),
    coalesce(${sql.graphId}, a.graph_id), coalesce(${sql.name}, a.name), coalesce(${sql.description}, a.description),
    ${sql.config}, ${sql.context}, a.metadata || ${sql.metadata}, clock_timestamp()
  from threadloom.assistants a
  where a.assistant_id = ${sql.assistantId} and ${hasRoomForMetadata(`a.metadata || ${sql.metadata}`)} and ${sql.visible}
  returning ${SNAPSHOT.join(", ")})
update threadloom.assistants a set version = s.version, graph_id = s.graph_id, name = s.name, description = s.description,
  config = s.config, context = s.context, metadata = s.metadata, updated_at = s.created_at
from snapshot s where a.assistant_id = s.assistant_id
returning ${COLUMNS.map((column) => `a.${column}`).join(", ")}`,
);

export const createVersionRepository = (database: Database) => {
  const kysely = queriesOver(database);

  return {
    async lock(
      transaction: Records,
      visibility: Visibility<"assistants">,
      assistantId: string,
    ): Promise<boolean> {
      const row = await queriesOver(transaction)
        .selectFrom("assistants")
        .select("assistant_id")
        .where("assistant_id", "=", assistantId)
        .where(whereVisible(visibility, "metadata"))
        .forUpdate()
        .executeTakeFirst();
      return row !== undefined;
    },

    /** The caller holds the lock. Undefined if the metadata would grow too large. */
    async addVersion(
      transaction: Records,
      visibility: Permission<"assistants", "update">,
      assistantId: string,
      version: NewVersion,
    ): Promise<AssistantRow | undefined> {
      const { name, description, config = {}, context = {}, metadata } = visibility.value;
      const [row] = await ADD_VERSION.query<AssistantRow>(transaction, {
        assistantId,
        ...version,
        name,
        description,
        config,
        context,
        metadata,
        visible: visibility.on("a.metadata"),
      });
      return row && transaction.encryption.decrypted("assistants", row);
    },

    /** Versions never change, so the update's own lock is enough. */
    async activate(
      visibility: Visibility<"assistants">,
      assistantId: string,
      version: number,
    ): Promise<AssistantRow | undefined> {
      const row = await kysely
        .updateTable("assistants as a")
        .from("assistant_versions as v")
        .set(({ ref }) => ({
          version: ref("v.version"),
          graph_id: ref("v.graph_id"),
          name: ref("v.name"),
          description: ref("v.description"),
          config: ref("v.config"),
          context: ref("v.context"),
          metadata: ref("v.metadata"),
          updated_at: sql<Date>`now()`,
        }))
        .where("a.assistant_id", "=", assistantId)
        .where("v.assistant_id", "=", assistantId)
        // A client's number may exceed the column's integer.
        .where("v.version", "=", sql<number>`${version}::bigint`)
        .where(whereVisible(visibility, "a.metadata"))
        .returning(COLUMNS.map((column) => `a.${column}` as const))
        .executeTakeFirst();
      return row && database.encryption.decrypted("assistants", row);
    },
  };
};

export type VersionRepository = ReturnType<typeof createVersionRepository>;
