import { sql } from "kysely";
import { type Permission, type Visibility, whereVisible } from "../../access/visibility.ts";
import type { Database, Queryable } from "../../platform/database/database.ts";
import { hasRoomForMetadata } from "../../platform/database/merging.ts";
import { composedRead } from "../../platform/database/queries.ts";
import { statement } from "../../platform/database/statement.ts";
import type { AssistantRow, AssistantVersionRow } from "../../platform/database/tables.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import {
  ASSISTANT_PARAMETERS,
  columns,
  contains,
  countWhere,
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

/** SQL: copies the columns of the version `s` to its assistant. */
const TAKEN = ["version", "graph_id", "name", "description", "config", "context", "metadata"]
  .map((column) => `${column} = s.${column}`)
  .join(", ");

const LOCK = statement(
  { assistantId: "uuid", visible: "fragment" },
  (sql) => `select 1 from threadloom.assistants
  where assistant_id = ${sql.assistantId} and ${sql.visible} for update`,
);

/**
 * Raw SQL for the CTE. Runs after `lock`: only a statement that starts after the wait for the lock sees another
 * transaction's version.
 */
const ADD_VERSION = statement(
  { ...ASSISTANT_PARAMETERS, visible: "fragment" },
  (sql) => `with snapshot as (
  insert into threadloom.assistant_versions (${SNAPSHOT})
  select a.assistant_id, (select max(version) + 1 from threadloom.assistant_versions where assistant_id = ${sql.assistantId}),
    coalesce(${sql.graphId}, a.graph_id), coalesce(${sql.name}, a.name), coalesce(${sql.description}, a.description),
    ${sql.config}, ${sql.context}, a.metadata || ${sql.metadata}, clock_timestamp()
  from threadloom.assistants a
  where a.assistant_id = ${sql.assistantId} and ${hasRoomForMetadata(`a.metadata || ${sql.metadata}`)} and ${sql.visible}
  returning ${SNAPSHOT})
update threadloom.assistants a set ${TAKEN}, updated_at = s.created_at
from snapshot s where a.assistant_id = s.assistant_id
returning ${columns("a.")}`,
);

/** Versions never change, so the update's own lock is enough. A client's number may exceed the column's integer. */
const ACTIVATE = statement(
  { assistantId: "uuid", version: "bigint", visible: "fragment" },
  (
    sql,
  ) => `update threadloom.assistants a set ${TAKEN}, updated_at = now() from threadloom.assistant_versions s
  where a.assistant_id = ${sql.assistantId} and s.assistant_id = ${sql.assistantId} and s.version = ${sql.version}
    and ${sql.visible}
  returning ${columns("a.")}`,
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
  returning ${columns()})
insert into threadloom.assistant_versions (${SNAPSHOT}) select ${SNAPSHOT} from assistant`,
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
  insert into threadloom.assistant_versions (${SNAPSHOT})
  select a.assistant_id,
    (select max(v.version) + 1 from threadloom.assistant_versions v where v.assistant_id = a.assistant_id),
    a.graph_id, a.name, wished.description, wished.config, wished.context,
    -- Those of a user stay.
    case when a.defaults -> 'starters' is not null then a.metadata - 'starters' else a.metadata end || wished.metadata,
    clock_timestamp()
  from threadloom.assistants a join wished using (assistant_id) where a.assistant_id = any(${sql.ids})
  returning ${SNAPSHOT})
update threadloom.assistants a set ${TAKEN}, updated_at = s.created_at, defaults = wished.defaults
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
  const { encryption } = database;

  const matches = (visibility: Visibility<"assistants">, assistantId: string, metadata: JsonObject) => {
    encryption.assertSearchable(metadata);
    return sql`assistant_id = ${assistantId}::uuid and ${contains(metadata)} and ${versionVisible(visibility)}`;
  };

  return {
    async lock(
      transaction: Queryable,
      visibility: Visibility<"assistants">,
      assistantId: string,
    ): Promise<boolean> {
      const visible = visibility.on("metadata");
      return (await LOCK.query(transaction, { assistantId, visible })).length > 0;
    },

    /** The caller holds the lock. Undefined if the metadata would grow too large. */
    async addVersion(
      transaction: Queryable,
      visibility: Permission<"assistants", "update">,
      assistantId: string,
      version: NewVersion,
    ): Promise<AssistantRow | undefined> {
      const { name, description, config = {}, context = {}, metadata } = visibility.value;
      const [row] = await ADD_VERSION.query<AssistantRow>(transaction, {
        ...{ assistantId, ...version, name, description, config, context, metadata },
        visible: visibility.on("a.metadata"),
      });
      return row && encryption.decrypted("assistants", row);
    },

    async activate(
      visibility: Visibility<"assistants">,
      assistantId: string,
      version: number,
    ): Promise<AssistantRow | undefined> {
      const visible = visibility.on("a.metadata");
      const [row] = await ACTIVATE.query<AssistantRow>(database, { assistantId, version, visible });
      return row && encryption.decrypted("assistants", row);
    },

    /** `total` counts all matches: an assistant has few versions. */
    async page(
      visibility: Visibility<"assistants">,
      assistantId: string,
      { metadata = {}, limit, offset }: AssistantVersionsSearch,
      signal?: AbortSignal,
    ): Promise<{ rows: AssistantVersionRow[]; total: number | undefined }> {
      const found = await composedRead<CountedRow<AssistantVersionRow>>(
        database.boundedRead,
        sql`select ${sql.raw(SNAPSHOT)}, count(*) over ()::int as total from threadloom.assistant_versions
          where ${matches(visibility, assistantId, metadata)}
          order by version desc limit ${limit}::bigint offset ${offset}::bigint`,
        { signal, weight: weightOf() },
      );
      const rows = encryption.decryptedRows("assistant_versions", found.map(toRow));
      return { rows, total: found[0]?.total };
    },

    async count(
      visibility: Visibility<"assistants">,
      assistantId: string,
      metadata: JsonObject = {},
      signal?: AbortSignal,
    ): Promise<number> {
      const where = matches(visibility, assistantId, metadata);
      return await countWhere(database, "assistant_versions", where, signal);
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
