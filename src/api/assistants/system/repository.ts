import type { Visibility } from "../../../access/visibility.ts";
import type { Database, Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { COLUMNS, SNAPSHOT } from "../columns.ts";

export interface SystemAssistant {
  assistantId: string;
  graphId: string;
  description: string | null;
  config: JsonObject;
  context: JsonObject;
  /** Beside `created_by`. */
  metadata: { starters?: readonly string[] };
}

const PARAMETERS = {
  assistantIds: "uuid[]",
  graphIds: "text[]",
  descriptions: "text[]",
  configs: "json[]",
  contexts: "json[]",
  metadatas: "jsonb[]",
  defaults: "json[]",
} as const;

const wished = (sql: Readonly<Record<keyof typeof PARAMETERS, string>>): string => `wished as (
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
  PARAMETERS,
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
  { ...PARAMETERS, visible: "fragment" },
  (sql) => `with ${wished(sql)}
select a.assistant_id from threadloom.assistants a
join wished using (assistant_id)
where wished.defaults::text is distinct from a.defaults::text and ${sql.visible}
order by a.assistant_id for update of a`,
);

/** Runs after `LOCK_OTHERS`, so that it sees all versions. */
const REVISE = statement(
  { ...PARAMETERS, ids: "uuid[]" },
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

export const createSystemAssistantRepository = (database: Database) => ({
  async ensure(_visibility: Visibility<"assistants">, assistants: readonly SystemAssistant[]): Promise<void> {
    await ENSURE_SYSTEM_ASSISTANTS.query(database, listsOf(assistants));
  },

  /** Unchanged defaults add no version, because a user may have added a later one. */
  async revise(
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
});

export type SystemAssistantRepository = ReturnType<typeof createSystemAssistantRepository>;
