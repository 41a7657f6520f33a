import { sql } from "kysely";
import type { Visibility } from "../../../access/visibility.ts";
import { queriesOver } from "../../../platform/database/queries.ts";
import { whereVisible } from "../../../access/where-visible.ts";
import { roomyPage } from "../../../platform/database/bounded-reads.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { AssistantVersionRow } from "../../../platform/database/tables.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { contains, LONG_COLUMNS, SNAPSHOT, toRow, weightOf, type CountedRow } from "../columns.ts";
import type { AssistantVersionsSearch } from "../schemas.ts";

/** The assistant's metadata decide, not the version's. */
const versionVisible = (visibility: Visibility<"assistants">) =>
  whereVisible(
    visibility,
    "assistant.metadata",
    (condition) => `exists (select from threadloom.assistants assistant
      where assistant.assistant_id = assistant_versions.assistant_id and (${condition}))`,
  );

export const createVersionLists = (database: Database) => {
  const kysely = queriesOver(database);

  return {
    /** `total` counts all matches: an assistant has few versions. */
    async page(
      visibility: Visibility<"assistants">,
      assistantId: string,
      { metadata = {}, limit, offset }: AssistantVersionsSearch,
      signal?: AbortSignal,
    ): Promise<{ rows: AssistantVersionRow[]; total: number | undefined }> {
      database.encryption.assertSearchable(metadata);
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
      return {
        rows: database.encryption.decryptedRows("assistant_versions", found.map(toRow)),
        total: found[0]?.total,
      };
    },

    async count(
      visibility: Visibility<"assistants">,
      assistantId: string,
      metadata: JsonObject = {},
      signal?: AbortSignal,
    ): Promise<number> {
      database.encryption.assertSearchable(metadata);
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

export type VersionLists = ReturnType<typeof createVersionLists>;
