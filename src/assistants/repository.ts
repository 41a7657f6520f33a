import type { ExpressionBuilder } from "kysely";
import { sql } from "kysely";
import { roomyPage, type PageColumns, type PageWeight } from "../database/bounded-reads.ts";
import type { Database, Queryable } from "../database/database.ts";
import { hasRoomFor } from "../database/merging.ts";
import type { AssistantRow, AssistantVersionRow, Tables } from "../database/tables.ts";
import type { JsonObject } from "../lib/json.ts";
import type { AssistantField, AssistantFilter, AssistantSearch, AssistantVersionsSearch } from "./schemas.ts";

export interface NewAssistant {
  assistantId: string;
  graphId: string;
  name: string;
  description: string | null;
  config: JsonObject;
  context: JsonObject;
  metadata: JsonObject;
}

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

const COLUMNS =
  "assistant_id, graph_id, name, description, config, context, metadata, version, created_at, updated_at";
const SNAPSHOT = "assistant_id, version, graph_id, name, description, config, context, metadata, created_at";

/** The assistant and its version 1 in one statement: there is never one without the other. */
const CREATE = `with assistant as (
  insert into threadloom.assistants (assistant_id, graph_id, name, description, config, context, metadata, version)
  values ($1, $2, $3, $4, $5::jsonb, $6::jsonb, $7::jsonb, 1)
  on conflict (assistant_id) do nothing
  returning ${COLUMNS}),
first_version as (
  insert into threadloom.assistant_versions (${SNAPSHOT}) select ${SNAPSHOT} from assistant)
select ${COLUMNS} from assistant`;

/**
 * Ordered by id, so that replicas that boot at once wait for each other's rows in the same order and can't
 * deadlock. An assistant that exists is left alone: a user may have made a later version of it.
 */
const ENSURE_SYSTEM_ASSISTANTS = `with assistant as (
  insert into threadloom.assistants (assistant_id, graph_id, name, description, config, metadata, version)
  select id, graph_id, graph_id, description, config::jsonb, '{"created_by": "system"}', 1
  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as graph (id, graph_id, description, config)
  order by id
  on conflict (assistant_id) do nothing
  returning ${COLUMNS})
insert into threadloom.assistant_versions (${SNAPSHOT}) select ${SNAPSHOT} from assistant`;

const OTHER_CONFIGS = `select assistant_id from threadloom.assistants
join unnest($1::uuid[], $2::text[]) as wished (assistant_id, config) using (assistant_id)
where assistants.config <> wished.config::jsonb`;

const LOCK = "select from threadloom.assistants where assistant_id = $1 for update";

/** Runs after LOCK: only a statement that starts after the wait sees the version that another one just made. */
const ADD_VERSION = `with snapshot as (
  insert into threadloom.assistant_versions (${SNAPSHOT})
  select a.assistant_id, (select max(version) + 1 from threadloom.assistant_versions where assistant_id = $1),
    coalesce($2, a.graph_id), coalesce($3, a.name), coalesce($4, a.description), $5::jsonb, $6::jsonb,
    a.metadata || $7::jsonb, clock_timestamp()
  from threadloom.assistants a where a.assistant_id = $1 and ${hasRoomFor("a.metadata || $7::jsonb")}
  returning ${SNAPSHOT})
update threadloom.assistants a set version = s.version, graph_id = s.graph_id, name = s.name, description = s.description,
  config = s.config, context = s.context, metadata = s.metadata, updated_at = s.created_at
from snapshot s where a.assistant_id = s.assistant_id
returning ${COLUMNS.replace(/\w+/g, "a.$&")}`;

/** A version never changes, so no lock is needed beyond the update's own. */
const ACTIVATE = `update threadloom.assistants a set version = v.version, graph_id = v.graph_id, name = v.name,
  description = v.description, config = v.config, context = v.context, metadata = v.metadata, updated_at = now()
from threadloom.assistant_versions v
where a.assistant_id = $1 and v.assistant_id = $1 and v.version = $2::bigint
returning ${COLUMNS.replace(/\w+/g, "a.$&")}`;

/** Index: threads_by_metadata. By id after the last page, because what is found may be gone by then or not. */
const THREADS_OF_ASSISTANT = `select thread_id from threadloom.threads
where metadata @> jsonb_build_object('assistant_id', $1::text) and ($2::uuid is null or thread_id > $2)
order by thread_id limit $3`;

/** An assistant has few versions: counting them all costs no more than sorting them. */
const VERSIONS = `select ${SNAPSHOT}, count(*) over ()::int as total from threadloom.assistant_versions
where assistant_id = $1 and metadata @> $2::jsonb order by version desc limit $3 offset $4`;

const LONG_COLUMNS = ["config", "context", "metadata"] as const;
const weightOf = (sent: readonly string[]): PageWeight => {
  const [first, second, third] = LONG_COLUMNS.filter((column) => sent.includes(column));
  return { columns: [first, second, third] };
};

type CountedRow<Row> = Row & PageColumns & { total: number };

const toRow = <Row>({ total: _, weight_before: __, page_rows: ___, ...row }: CountedRow<Row>) => row;

type Filter = Pick<AssistantFilter, "graph_id" | "name" | "metadata">;

const matches =
  ({ graph_id, name, metadata }: Filter) =>
  (expressions: ExpressionBuilder<Tables, "assistants">) => {
    const conditions = [];
    if (graph_id !== undefined) conditions.push(expressions("graph_id", "=", graph_id));
    // strpos, not ILIKE: `%` and `_` in what the user typed are no wildcards.
    if (name !== undefined) conditions.push(sql<boolean>`strpos(lower(name), lower(${name})) > 0`);
    if (metadata !== undefined && Object.keys(metadata).length > 0) {
      conditions.push(sql<boolean>`metadata @> ${JSON.stringify(metadata)}::jsonb`);
    }
    return expressions.and(conditions);
  };

/** The SQL of assistants and their versions. */
export const createAssistantRepository = (database: Database) => {
  const { kysely } = database;

  return {
    /** Undefined if there is one with this id. */
    async create(assistant: NewAssistant): Promise<AssistantRow | undefined> {
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
      assistantIds: string[],
      graphIds: string[],
      descriptions: (string | null)[],
      configs: JsonObject[],
    ): Promise<void> {
      const texts = configs.map((config) => JSON.stringify(config));
      await database.query(ENSURE_SYSTEM_ASSISTANTS, [assistantIds, graphIds, descriptions, texts]);
    },

    /** Those of the assistants whose config is another one. */
    async listOtherConfigs(assistantIds: string[], configs: JsonObject[]): Promise<string[]> {
      const texts = configs.map((config) => JSON.stringify(config));
      const rows = await database.query<{ assistant_id: string }>(OTHER_CONFIGS, [assistantIds, texts]);
      return rows.map((row) => row.assistant_id);
    },

    async find(assistantId: string): Promise<AssistantRow | undefined> {
      const rows = await database.query<AssistantRow>(
        `select ${COLUMNS} from threadloom.assistants where assistant_id = $1`,
        [assistantId],
      );
      return rows[0];
    },

    /** False if there is none. Held until the transaction ends. */
    async lock(transaction: Queryable, assistantId: string): Promise<boolean> {
      return (await transaction.query(LOCK, [assistantId])).length > 0;
    },

    /** Makes version max + 1 and activates it; the caller holds the lock. Undefined: its metadata have no room. */
    async addVersion(
      transaction: Queryable,
      assistantId: string,
      version: NewVersion,
    ): Promise<AssistantRow | undefined> {
      const rows = await transaction.query<AssistantRow>(ADD_VERSION, [
        assistantId,
        version.graphId ?? null,
        version.name ?? null,
        version.description ?? null,
        JSON.stringify(version.config),
        JSON.stringify(version.context),
        JSON.stringify(version.metadata),
      ]);
      return rows[0];
    },

    /** Undefined if there is no such version, or no such assistant. */
    async activate(assistantId: string, version: number): Promise<AssistantRow | undefined> {
      const rows = await database.query<AssistantRow>(ACTIVATE, [assistantId, version]);
      return rows[0];
    },

    /** With all its versions. False if there was none. */
    async remove(assistantId: string): Promise<boolean> {
      const rows = await database.query(
        "delete from threadloom.assistants where assistant_id = $1 returning assistant_id",
        [assistantId],
      );
      return rows.length > 0;
    },

    async threadsOf(assistantId: string, after: string | undefined, limit: number): Promise<string[]> {
      const rows = await database.query<{ thread_id: string }>(THREADS_OF_ASSISTANT, [
        assistantId,
        after ?? null,
        limit,
      ]);
      return rows.map((row) => row.thread_id);
    },

    /** A page, and in the same round trip how many there are in all; undefined if the page is empty. */
    async search(
      search: AssistantSearch,
      fields: readonly AssistantField[],
      signal?: AbortSignal,
    ): Promise<{ rows: Partial<AssistantRow>[]; total: number | undefined }> {
      const order = search.sort_order ?? "desc";
      const sortBy = search.sort_by ?? "created_at";
      const filter = matches(search);
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

    async count(filter: Filter, signal?: AbortSignal): Promise<number> {
      const { sql: text, parameters } = kysely
        .selectFrom("assistants")
        .select(sql<number>`count(*)::int`.as("count"))
        .where(matches(filter))
        .compile();
      const rows = await database.boundedRead<{ count: number }>(text, [...parameters], signal);
      return rows[0]?.count ?? 0;
    },

    /** Newest first, and like `search` with how many there are in all. */
    async versions(
      assistantId: string,
      search: AssistantVersionsSearch,
      signal?: AbortSignal,
    ): Promise<{ rows: AssistantVersionRow[]; total: number | undefined }> {
      const found = await database.boundedRead<CountedRow<AssistantVersionRow>>(
        roomyPage(VERSIONS, weightOf(LONG_COLUMNS)),
        [assistantId, JSON.stringify(search.metadata ?? {}), search.limit, search.offset],
        signal,
      );
      return { rows: found.map((row) => toRow(row)), total: found[0]?.total };
    },

    async countVersions(
      assistantId: string,
      metadata: JsonObject | undefined,
      signal?: AbortSignal,
    ): Promise<number> {
      const rows = await database.boundedRead<{ count: number }>(
        "select count(*)::int as count from threadloom.assistant_versions where assistant_id = $1 and metadata @> $2::jsonb",
        [assistantId, JSON.stringify(metadata ?? {})],
        signal,
      );
      return rows[0]?.count ?? 0;
    },
  };
};

export type AssistantRepository = ReturnType<typeof createAssistantRepository>;
