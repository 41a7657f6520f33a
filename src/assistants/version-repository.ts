import { sql, type SqlBool } from "kysely";
import type { Visibility } from "../access/visibility.ts";
import { roomyPage, type PageColumns, type PageWeight } from "../database/bounded-reads.ts";
import type { Database, Records } from "../database/database.ts";
import { hasRoomFor } from "../database/merging.ts";
import type { AssistantRow, AssistantVersionRow } from "../database/tables.ts";
import type { JsonObject } from "../lib/json.ts";
import type { AssistantVersionsSearch } from "./schemas.ts";

/** What a new version takes over from the present state if it is undefined; config and context are given whole. */
export interface NewVersion {
  graphId: string | undefined;
  name: string | undefined;
  description: string | undefined;
  config: JsonObject;
  context: JsonObject;
  /** Merged into the present metadata, key by key. */
  metadata: JsonObject;
}

export const COLUMNS = [
  "assistant_id",
  "graph_id",
  "name",
  "description",
  "config",
  "context",
  "metadata",
  "version",
  "created_at",
  "updated_at",
] as const satisfies (keyof AssistantRow)[];
export const SNAPSHOT = [
  "assistant_id",
  "version",
  "graph_id",
  "name",
  "description",
  "config",
  "context",
  "metadata",
  "created_at",
] as const satisfies (keyof AssistantVersionRow)[];

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
  where a.assistant_id = $1 and ${hasRoomFor("a.metadata || $7::jsonb")} and ${visible}
  returning ${SNAPSHOT.join(", ")})
update threadloom.assistants a set version = s.version, graph_id = s.graph_id, name = s.name, description = s.description,
  config = s.config, context = s.context, metadata = s.metadata, updated_at = s.created_at
from snapshot s where a.assistant_id = s.assistant_id
returning ${COLUMNS.map((column) => `a.${column}`).join(", ")}`;

const LONG_COLUMNS = ["config", "context", "metadata"] as const;
export const weightOf = (sent: readonly string[]): PageWeight => {
  const [first, second, third] = LONG_COLUMNS.filter((column) => sent.includes(column));
  return { columns: [first, second, third] };
};

export type CountedRow<Row> = Row & PageColumns & { total: number };

export const toRow = <Row>({ total: _, weight_before: __, page_rows: ___, ...row }: CountedRow<Row>) => row;

export const contains = (metadata: JsonObject) =>
  sql<SqlBool>`metadata @> ${JSON.stringify(metadata)}::jsonb`;

/** Of what a version says of itself, only its assistant's metadata decide who may see it. */
const versionVisible = (visibility: Visibility<"assistants">) =>
  visibility.where(
    "assistant.metadata",
    (condition) => `exists (select from threadloom.assistants assistant
      where assistant.assistant_id = assistant_versions.assistant_id and (${condition}))`,
  );

/** The SQL of versions; a part of `createAssistantRepository`. */
export const createVersionRepository = (database: Database) => {
  const { kysely } = database;

  return {
    /** False if there is none. Held until the transaction ends. */
    async lock(
      transaction: Records,
      visibility: Visibility<"assistants">,
      assistantId: string,
    ): Promise<boolean> {
      const row = await transaction.kysely
        .selectFrom("assistants")
        .select("assistant_id")
        .where("assistant_id", "=", assistantId)
        .where(visibility.where("metadata"))
        .forUpdate()
        .executeTakeFirst();
      return row !== undefined;
    },

    /** Makes version max + 1 and activates it; the caller holds the lock. Undefined: its metadata have no room. */
    async addVersion(
      transaction: Records,
      visibility: Visibility<"assistants">,
      assistantId: string,
      version: NewVersion,
    ): Promise<AssistantRow | undefined> {
      const values: unknown[] = [
        assistantId,
        version.graphId ?? null,
        version.name ?? null,
        version.description ?? null,
        JSON.stringify(version.config),
        JSON.stringify(version.context),
        JSON.stringify(version.metadata),
      ];
      const visible = visibility.condition("a.metadata", values);
      const rows = await transaction.query<AssistantRow>(addVersion(visible), values);
      return rows[0];
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
      return await kysely
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
        .where(visibility.where("a.metadata"))
        .returning(COLUMNS.map((column) => `a.${column}` as const))
        .executeTakeFirst();
    },

    /**
     * Newest first, and like `search` with how many there are in all. An assistant has few versions: counting them all
     * costs no more than sorting them.
     */
    async versions(
      visibility: Visibility<"assistants">,
      assistantId: string,
      { metadata = {}, limit, offset }: AssistantVersionsSearch,
      signal?: AbortSignal,
    ): Promise<{ rows: AssistantVersionRow[]; total: number | undefined }> {
      const page = kysely
        .selectFrom("assistant_versions")
        .select(SNAPSHOT)
        .select(sql<number>`count(*) over ()::int`.as("total"))
        .where("assistant_id", "=", assistantId)
        .where(contains(metadata))
        .where(versionVisible(visibility))
        .orderBy("version", "desc")
        .limit(limit)
        .offset(offset)
        .compile();
      const found = await database.boundedRead<CountedRow<AssistantVersionRow>>(
        roomyPage(page.sql, weightOf(LONG_COLUMNS)),
        [...page.parameters],
        signal,
      );
      return { rows: found.map((row) => toRow(row)), total: found[0]?.total };
    },

    async countVersions(
      visibility: Visibility<"assistants">,
      assistantId: string,
      metadata: JsonObject = {},
      signal?: AbortSignal,
    ): Promise<number> {
      const { sql: text, parameters } = kysely
        .selectFrom("assistant_versions")
        .select(sql<number>`count(*)::int`.as("count"))
        .where("assistant_id", "=", assistantId)
        .where(contains(metadata))
        .where(versionVisible(visibility))
        .compile();
      const rows = await database.boundedRead<{ count: number }>(text, [...parameters], signal);
      return rows[0]?.count ?? 0;
    },
  };
};
