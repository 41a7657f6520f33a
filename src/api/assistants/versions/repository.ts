import { sql } from "kysely";
import type { Permission, Visibility } from "../../../access/visibility.ts";
import { queriesOver } from "../../../platform/database/queries.ts";
import { whereVisible } from "../../../access/where-visible.ts";
import type { Database, Records } from "../../../platform/database/database.ts";
import { hasRoomForMetadata } from "../../../platform/database/merging.ts";
import type { AssistantRow } from "../../../platform/database/tables.ts";
import { ASSISTANT_JSON, decryptRow } from "../../../platform/encryption/columns.ts";
import { COLUMNS, SNAPSHOT } from "../columns.ts";

/** What a new version takes over from the present state if it is undefined. The rest is what was granted. */
export interface NewVersion {
  graphId: string | undefined;
}

/**
 * Raw for its CTE. Runs after `lock`: only a statement that starts after the wait sees the version that another one just
 * made.
 */
const addVersion = (visible: string): string => `with snapshot as (
  insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")})
  select a.assistant_id, (select max(version) + 1 from threadloom.assistant_versions where assistant_id = $1),
    coalesce($2, a.graph_id), coalesce($3, a.name), coalesce($4, a.description), $5::jsonb, $6::jsonb,
    a.metadata || $7::jsonb, clock_timestamp()
  from threadloom.assistants a
  where a.assistant_id = $1 and ${hasRoomForMetadata("a.metadata || $7::jsonb")} and ${visible}
  returning ${SNAPSHOT.join(", ")})
update threadloom.assistants a set version = s.version, graph_id = s.graph_id, name = s.name, description = s.description,
  config = s.config, context = s.context, metadata = s.metadata, updated_at = s.created_at
from snapshot s where a.assistant_id = s.assistant_id
returning ${COLUMNS.map((column) => `a.${column}`).join(", ")}`;

/** The SQL that makes versions and activates them. */
export const createVersionRepository = (database: Database) => {
  const kysely = queriesOver(database);

  return {
    /** False if there is none. Held until the transaction ends. */
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

    /**
     * Makes version max + 1 and activates it; the caller holds the lock. Name and description stay unless given, config and
     * context are given whole, metadata are merged key by key. Undefined: its metadata have no room.
     */
    async addVersion(
      transaction: Records,
      visibility: Permission<"assistants", "update">,
      assistantId: string,
      version: NewVersion,
    ): Promise<AssistantRow | undefined> {
      const { name, description, config = {}, context = {}, metadata } = visibility.value;
      const { cipher } = transaction;
      const key = { assistant_id: assistantId };
      const values: unknown[] = [
        assistantId,
        version.graphId ?? null,
        name ?? null,
        description ?? null,
        ASSISTANT_JSON.config.stored(cipher, config, key),
        ASSISTANT_JSON.context.stored(cipher, context, key),
        ASSISTANT_JSON.metadata.stored(cipher, metadata, key),
      ];
      const visible = visibility.condition("a.metadata", values);
      const [row] = await transaction.query<AssistantRow>(addVersion(visible), values);
      return row && decryptRow(cipher, ASSISTANT_JSON, row);
    },

    /**
     * Undefined if there is no such version, or no such assistant. A version never changes, so no lock is needed beyond
     * the update's own.
     */
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
        // Any number that a client names, which the column's integer might not hold.
        .where("v.version", "=", sql<number>`${version}::bigint`)
        .where(whereVisible(visibility, "a.metadata"))
        .returning(COLUMNS.map((column) => `a.${column}` as const))
        .executeTakeFirst();
      return row && decryptRow(database.cipher, ASSISTANT_JSON, row);
    },
  };
};

export type VersionRepository = ReturnType<typeof createVersionRepository>;
