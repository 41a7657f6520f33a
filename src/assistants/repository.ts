import { sql, type Expression, type ExpressionBuilder, type SqlBool } from "kysely";
import type { Visibility } from "../access/visibility.ts";
import { roomyPage } from "../database/bounded-reads.ts";
import type { Database } from "../database/database.ts";
import type { AssistantRow, Tables } from "../database/tables.ts";
import type { JsonObject } from "../lib/json.ts";
import type { AssistantField, AssistantFilter, AssistantSearch } from "./schemas.ts";
import {
  COLUMNS,
  contains,
  createVersionRepository,
  SNAPSHOT,
  toRow,
  weightOf,
  type CountedRow,
} from "./version-repository.ts";

export interface NewAssistant {
  assistantId: string;
  graphId: string;
  name: string;
  description: string | null;
  config: JsonObject;
  context: JsonObject;
  metadata: JsonObject;
}

/** Raw for its CTE: the assistant and its version 1 in one statement, so that there is never one without the other. */
const CREATE = `with assistant as (
  insert into threadloom.assistants (assistant_id, graph_id, name, description, config, context, metadata, version)
  values ($1, $2, $3, $4, $5::jsonb, $6::jsonb, $7::jsonb, 1)
  on conflict (assistant_id) do nothing
  returning ${COLUMNS.join(", ")}),
first_version as (
  insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")}) select ${SNAPSHOT.join(", ")} from assistant)
select ${COLUMNS.join(", ")} from assistant`;

/**
 * Raw for its CTE and its lists. Ordered by id, so that replicas that boot at once wait for each other's rows in the same order and can't
 * deadlock. An assistant that exists is left alone: a user may have made a later version of it.
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

type Filter = Pick<AssistantFilter, "graph_id" | "name" | "metadata">;

const matches =
  (visibility: Visibility<"assistants">, { graph_id, name, metadata }: Filter) =>
  (expressions: ExpressionBuilder<Tables, "assistants">) => {
    const conditions: Expression<SqlBool>[] = [visibility.where("metadata")];
    if (graph_id !== undefined) conditions.push(expressions("graph_id", "=", graph_id));
    // strpos, not ILIKE: `%` and `_` in what the user typed are no wildcards.
    if (name !== undefined) conditions.push(sql<SqlBool>`strpos(lower(name), lower(${name})) > 0`);
    if (metadata !== undefined && Object.keys(metadata).length > 0) {
      conditions.push(contains(metadata));
    }
    return expressions.and(conditions);
  };

/**
 * The SQL of assistants and their versions. What a visibility hides is as if it were not there; where records are only
 * added, it is the proof that somebody was asked.
 */
export const createAssistantRepository = (database: Database) => {
  const { kysely } = database;

  return {
    ...createVersionRepository(database),

    /** Undefined if there is one with this id. */
    async create(
      _visibility: Visibility<"assistants">,
      assistant: NewAssistant,
    ): Promise<AssistantRow | undefined> {
      const rows = await database.query<AssistantRow>(CREATE, [
        assistant.assistantId,
        assistant.graphId,
        assistant.name,
        assistant.description,
        JSON.stringify(assistant.config),
        JSON.stringify(assistant.context),
        JSON.stringify(assistant.metadata),
      ]);
      return rows[0];
    },

    /** The three lists belong together, position by position. */
    async ensureSystemAssistants(
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

    async find(visibility: Visibility<"assistants">, assistantId: string): Promise<AssistantRow | undefined> {
      return await kysely
        .selectFrom("assistants")
        .select(COLUMNS)
        .where("assistant_id", "=", assistantId)
        .where(visibility.where("metadata"))
        .executeTakeFirst();
    },

    /** With all its versions. False if there was none. */
    async remove(visibility: Visibility<"assistants">, assistantId: string): Promise<boolean> {
      const { numDeletedRows } = await kysely
        .deleteFrom("assistants")
        .where("assistant_id", "=", assistantId)
        .where(visibility.where("metadata"))
        .executeTakeFirstOrThrow();
      return numDeletedRows > 0n;
    },

    /**
     * Threads of an assistant, by their ids; from page to page by the last one's id (`after`), because what was found may
     * be gone by then or not. Index: threads_by_metadata.
     */
    async threadsOf(
      visibility: Visibility<"threads">,
      assistantId: string,
      after: string | undefined,
      limit: number,
    ): Promise<string[]> {
      const rows = await kysely
        .selectFrom("threads")
        .select("thread_id")
        .where(contains({ assistant_id: assistantId }))
        .$if(after !== undefined, (query) => query.where("thread_id", ">", after ?? ""))
        .where(visibility.where("metadata"))
        .orderBy("thread_id")
        .limit(limit)
        .execute();
      return rows.map((row) => row.thread_id);
    },

    /** A page, and in the same round trip how many there are in all; undefined if the page is empty. */
    async search(
      visibility: Visibility<"assistants">,
      search: AssistantSearch,
      fields: readonly AssistantField[],
      signal?: AbortSignal,
    ): Promise<{ rows: Partial<AssistantRow>[]; total: number | undefined }> {
      const order = search.sort_order ?? "desc";
      const sortBy = search.sort_by ?? "created_at";
      const filter = matches(visibility, search);
      let query = kysely
        .selectFrom("assistants")
        .select(fields)
        .select((expressions) =>
          expressions
            .selectFrom("assistants")
            .select(sql<number>`count(*)::int`.as("total"))
            .where(filter)
            .as("total"),
        )
        .where(filter)
        .orderBy(sortBy, order);
      if (sortBy !== "assistant_id") query = query.orderBy("assistant_id", order); // pages must not overlap
      const page = query.limit(search.limit).offset(search.offset).compile();
      const found = await database.boundedRead<CountedRow<Partial<AssistantRow>>>(
        roomyPage(page.sql, weightOf(fields)),
        [...page.parameters],
        signal,
      );
      return { rows: found.map((row) => toRow(row)), total: found[0]?.total };
    },

    async count(visibility: Visibility<"assistants">, filter: Filter, signal?: AbortSignal): Promise<number> {
      const { sql: text, parameters } = kysely
        .selectFrom("assistants")
        .select(sql<number>`count(*)::int`.as("count"))
        .where(matches(visibility, filter))
        .compile();
      const rows = await database.boundedRead<{ count: number }>(text, [...parameters], signal);
      return rows[0]?.count ?? 0;
    },
  };
};

export type AssistantRepository = ReturnType<typeof createAssistantRepository>;
