import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../database/database.ts";
import type { JsonObject } from "../../lib/json.ts";
import { COLUMNS, SNAPSHOT } from "../columns.ts";

/**
 * Raw for its CTE and its lists. Ordered by id, so that replicas that boot at once wait for each other's rows in the
 * same order and can't deadlock. An assistant that exists is left alone: a user may have made a later version of it.
 */
const ENSURE_SYSTEM_ASSISTANTS = `with assistant as (
  insert into threadloom.assistants (assistant_id, graph_id, name, description, config, metadata, version)
  select id, graph_id, graph_id, description, config::jsonb, '{"created_by": "system"}', 1
  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as graph (id, graph_id, description, config)
  order by id
  on conflict (assistant_id) do nothing
  returning ${COLUMNS.join(", ")})
insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")}) select ${SNAPSHOT.join(", ")} from assistant`;

/** Raw for its lists. */
const otherConfigs = (visible: string): string => `select assistant_id from threadloom.assistants a
join unnest($1::uuid[], $2::text[]) as wished (assistant_id, config) using (assistant_id)
where a.config <> wished.config::jsonb and ${visible}`;

/** The SQL of the assistants that graph ids stand for. */
export const createSystemAssistantRepository = (database: Database) => ({
  /** The three lists belong together, position by position. */
  async ensure(
    _visibility: Visibility<"assistants">,
    assistantIds: string[],
    graphIds: string[],
    descriptions: (string | null)[],
    configs: JsonObject[],
  ): Promise<void> {
    const texts = configs.map((config) => JSON.stringify(config));
    await database.query(ENSURE_SYSTEM_ASSISTANTS, [assistantIds, graphIds, descriptions, texts]);
  },

  /** Those of the assistants whose config is another one. */
  async listOtherConfigs(
    visibility: Visibility<"assistants">,
    assistantIds: string[],
    configs: JsonObject[],
  ): Promise<string[]> {
    const values: unknown[] = [assistantIds, configs.map((config) => JSON.stringify(config))];
    const visible = visibility.condition("a.metadata", values);
    const rows = await database.query<{ assistant_id: string }>(otherConfigs(visible), values);
    return rows.map((row) => row.assistant_id);
  },
});

export type SystemAssistantRepository = ReturnType<typeof createSystemAssistantRepository>;
