import type { Visibility } from "../../../access/visibility.ts";
import type { Database, Queryable } from "../../../platform/database/database.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { COLUMNS, SNAPSHOT } from "../columns.ts";

export interface SystemAssistant {
  assistantId: string;
  graphId: string;
  description: string | null;
  config: JsonObject;
  context: JsonObject;
}

/** For the comparison at the next start. */
const WISHED = `wished as (
  select *, jsonb_build_object('description', description, 'config', config, 'context', context) as defaults
  from unnest($1::uuid[], $2::text[], $3::text[], $4::jsonb[], $5::jsonb[])
    as said (assistant_id, graph_id, description, config, context))`;

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

/** Raw for its CTE and lists. Ordered, so that replicas that start at once do not deadlock. */
const ENSURE_SYSTEM_ASSISTANTS = `with ${WISHED},
assistant as (
  insert into threadloom.assistants (${COLUMNS_OF_NEW.join(", ")})
  select assistant_id, graph_id, graph_id, description, config, context, '{"created_by": "system"}', 1, defaults
  from wished order by assistant_id
  on conflict (assistant_id) do nothing
  returning ${COLUMNS.join(", ")})
insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")}) select ${SNAPSHOT.join(", ")} from assistant`;

const lockOthers = (visible: string): string => `with ${WISHED}
select a.assistant_id from threadloom.assistants a
join wished using (assistant_id)
where wished.defaults is distinct from a.defaults and ${visible}
order by a.assistant_id for update of a`;

/** Runs after `lockOthers`, so that it sees all versions. */
const REVISE = `with ${WISHED},
snapshot as (
  insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")})
  select a.assistant_id,
    (select max(v.version) + 1 from threadloom.assistant_versions v where v.assistant_id = a.assistant_id),
    a.graph_id, a.name, wished.description, wished.config, wished.context, a.metadata, clock_timestamp()
  from threadloom.assistants a join wished using (assistant_id) where a.assistant_id = any($6::uuid[])
  returning ${SNAPSHOT.join(", ")})
update threadloom.assistants a set version = s.version, description = s.description, config = s.config,
  context = s.context, updated_at = s.created_at, defaults = wished.defaults
from snapshot s join wished using (assistant_id) where a.assistant_id = s.assistant_id
returning a.graph_id`;

const toLists = (assistants: readonly SystemAssistant[]): unknown[] => [
  assistants.map(({ assistantId }) => assistantId),
  assistants.map(({ graphId }) => graphId),
  assistants.map(({ description }) => description),
  assistants.map(({ config }) => JSON.stringify(config)),
  assistants.map(({ context }) => JSON.stringify(context)),
];

export const createSystemAssistantRepository = (database: Database) => ({
  /** Creates missing assistants. */
  async ensure(_visibility: Visibility<"assistants">, assistants: readonly SystemAssistant[]): Promise<void> {
    await database.query(ENSURE_SYSTEM_ASSISTANTS, toLists(assistants));
  },

  /**
   * Unchanged defaults add no version, since a user may have added a later one. Returns the graphs of changed
   * assistants.
   */
  async revise(
    visibility: Visibility<"assistants">,
    assistants: readonly SystemAssistant[],
  ): Promise<string[]> {
    const lists = toLists(assistants);
    const lockValues = [...lists];
    const text = lockOthers(visibility.condition("a.metadata", lockValues));
    return await database.transaction(async (transaction: Queryable) => {
      const others = await transaction.query<{ assistant_id: string }>(text, lockValues);
      if (others.length === 0) return [];
      const ids = others.map(({ assistant_id }) => assistant_id);
      const rows = await transaction.query<{ graph_id: string }>(REVISE, [...lists, ids]);
      return rows.map(({ graph_id }) => graph_id);
    });
  },
});

export type SystemAssistantRepository = ReturnType<typeof createSystemAssistantRepository>;
