import { sql } from "kysely";
import { type Permission, type Visibility, whereVisible } from "../../access/visibility.ts";
import { roomyPage } from "../../platform/database/bounded-reads.ts";
import type { Database, Queryable, Records } from "../../platform/database/database.ts";
import { hasRoomForMetadata } from "../../platform/database/merging.ts";
import { queriesOver } from "../../platform/database/queries.ts";
import { statement } from "../../platform/database/statement.ts";
import type { AssistantRow, AssistantVersionRow } from "../../platform/database/tables.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import {
  ASSISTANT_PARAMETERS,
  COLUMNS,
  contains,
  LONG_COLUMNS,
  SNAPSHOT,
  toRow,
  weightOf,
  type CountedRow,
} from "./repository.ts";
import type { AssistantVersionsSearch } from "./schemas.ts";

interface NewVersion {
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

/** The assistant's metadata decide, not the version's. */
const versionVisible = (visibility: Visibility<"assistants">) =>
  whereVisible(
    visibility,
    "assistant.metadata",
    (condition) => `exists (select from threadloom.assistants assistant
      where assistant.assistant_id = assistant_versions.assistant_id and (${condition}))`,
  );

interface SystemAssistant {
  assistantId: string;
  graphId: string;
  description: string | null;
  config: JsonObject;
  context: JsonObject;
  /** Beside `created_by`. */
  metadata: { starters?: readonly string[] };
}

const GRAPH_PARAMETERS = {
  assistantIds: "uuid[]",
  graphIds: "text[]",
  descriptions: "text[]",
  configs: "json[]",
  contexts: "json[]",
  metadatas: "jsonb[]",
  defaults: "json[]",
} as const;

const wished = (sql: Readonly<Record<keyof typeof GRAPH_PARAMETERS, string>>): string => `wished as (
  select * from unnest(${sql.assistantIds}, ${sql.graphIds}, ${sql.descriptions}, ${sql.configs}, ${sql.contexts},
    ${sql.metadatas}, ${sql.defaults}) as said (assistant_id, graph_id, description, config, context, metadata, defaults))`;

const COLUMNS_OF_NEW = [
  "assistant_id",
  "graph_id",
  "name",
  "description",
  "config",
  "context",
  "metadata",
  "version",
  "defaults",
];

/** Raw SQL for the CTE and the lists. The order prevents deadlocks between replicas that start together. */
const ENSURE_SYSTEM_ASSISTANTS = statement(
  GRAPH_PARAMETERS,
  (sql) => `with ${wished(sql)},
assistant as (
  insert into threadloom.assistants (${COLUMNS_OF_NEW.join(", ")})
  select assistant_id, graph_id, graph_id, description, config, context, '{"created_by": "system"}' || metadata, 1, defaults
  from wished order by assistant_id
  on conflict (assistant_id) do nothing
  returning ${COLUMNS.join(", ")})
insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")}) select ${SNAPSHOT.join(", ")} from assistant`,
);

const LOCK_OTHERS = statement(
  { ...GRAPH_PARAMETERS, visible: "fragment" },
  (sql) => `with ${wished(sql)}
select a.assistant_id from threadloom.assistants a
join wished using (assistant_id)
where wished.defaults::text is distinct from a.defaults::text and ${sql.visible}
order by a.assistant_id for update of a`,
);

/** Runs after `LOCK_OTHERS`, so that it sees all versions. */
const REVISE = statement(
  { ...GRAPH_PARAMETERS, ids: "uuid[]" },
  (sql) => `with ${wished(sql)},
snapshot as (
  insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")})
  select a.assistant_id,
    (select max(v.version) + 1 from threadloom.assistant_versions v where v.assistant_id = a.assistant_id),
    a.graph_id, a.name, wished.description, wished.config, wished.context,
    -- Those of a user stay.
    case when a.defaults -> 'starters' is not null then a.metadata - 'starters' else a.metadata end || wished.metadata,
    clock_timestamp()
  from threadloom.assistants a join wished using (assistant_id) where a.assistant_id = any(${sql.ids})
  returning ${SNAPSHOT.join(", ")})
update threadloom.assistants a set version = s.version, description = s.description, config = s.config,
  context = s.context, metadata = s.metadata, updated_at = s.created_at, defaults = wished.defaults
from snapshot s join wished using (assistant_id) where a.assistant_id = s.assistant_id
returning a.graph_id`,
);

const listsOf = (assistants: readonly SystemAssistant[]) => ({
  assistantIds: assistants.map(({ assistantId }) => assistantId),
  graphIds: assistants.map(({ graphId }) => graphId),
  descriptions: assistants.map(({ description }) => description),
  configs: assistants.map(({ config }) => JSON.stringify(config)),
  contexts: assistants.map(({ context }) => JSON.stringify(context)),
  metadatas: assistants.map(({ metadata }) => JSON.stringify(metadata)),
  defaults: assistants.map(({ description, config, context, metadata }) =>
    JSON.stringify({ description, config, context, ...metadata }),
  ),
});

export const createVersionRepository = (database: Database) => {
  const kysely = queriesOver(database);
  const { encryption } = database;

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
      return row && encryption.decrypted("assistants", row);
    },

    /** `total` counts all matches: an assistant has few versions. */
    async page(
      visibility: Visibility<"assistants">,
      assistantId: string,
      { metadata = {}, limit, offset }: AssistantVersionsSearch,
      signal?: AbortSignal,
    ): Promise<{ rows: AssistantVersionRow[]; total: number | undefined }> {
      encryption.assertSearchable(metadata);
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
        rows: encryption.decryptedRows("assistant_versions", found.map(toRow)),
        total: found[0]?.total,
      };
    },

    async count(
      visibility: Visibility<"assistants">,
      assistantId: string,
      metadata: JsonObject = {},
      signal?: AbortSignal,
    ): Promise<number> {
      encryption.assertSearchable(metadata);
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

    async ensureOfGraphs(
      _visibility: Visibility<"assistants">,
      assistants: readonly SystemAssistant[],
    ): Promise<void> {
      await ENSURE_SYSTEM_ASSISTANTS.query(database, listsOf(assistants));
    },

    /** Unchanged defaults add no version, because a user may have added a later one. */
    async reviseOfGraphs(
      visibility: Visibility<"assistants">,
      assistants: readonly SystemAssistant[],
    ): Promise<string[]> {
      const lists = listsOf(assistants);
      const visible = visibility.on("a.metadata");
      return await database.transaction(async (transaction: Queryable) => {
        const others = await LOCK_OTHERS.query<{ assistant_id: string }>(transaction, { ...lists, visible });
        if (others.length === 0) return [];
        const ids = others.map(({ assistant_id }) => assistant_id);
        const rows = await REVISE.query<{ graph_id: string }>(transaction, { ...lists, ids });
        return rows.map(({ graph_id }) => graph_id);
      });
    },
  };
};
