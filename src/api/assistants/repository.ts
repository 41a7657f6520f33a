import { sql, type RawBuilder, type SqlBool } from "kysely";
import { type Permission, type Visibility, whereVisible } from "../../access/visibility.ts";
import type { PageColumns, PageWeight } from "../../platform/database/bounded-reads.ts";
import type { Database } from "../../platform/database/database.ts";
import { composedRead } from "../../platform/database/queries.ts";
import { encryptedParameter, literal, statement } from "../../platform/database/statement.ts";
import type { AssistantRow } from "../../platform/database/tables.ts";
import { assertOnePlace } from "../../platform/domain/cursors.ts";
import {
  isBehindCursor,
  keyOf,
  nextCursor,
  type KeyColumns,
  type KeyOrder,
} from "../../platform/domain/key-order.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import {
  ASSISTANT_FIELDS,
  type AssistantField,
  type AssistantFilter,
  type AssistantSearch,
} from "./schemas.ts";

const COLUMNS: readonly (keyof AssistantRow)[] = ASSISTANT_FIELDS;
/** `alias`: with a dot. */
export const columns = (alias = ""): string => COLUMNS.map((column) => `${alias}${column}`).join(", ");
/** The columns of a version. */
export const SNAPSHOT =
  "assistant_id, version, graph_id, name, description, config, context, metadata, created_at";

interface StoredAssistant extends Record<"config" | "context" | "metadata", JsonObject> {
  assistantId: string;
}
const idOf = ({ assistantId }: StoredAssistant) => ({ assistant_id: assistantId });
export const ASSISTANT_PARAMETERS = {
  assistantId: "uuid",
  graphId: "text",
  name: "text",
  description: "text",
  config: encryptedParameter("assistants", "config", ({ config }: StoredAssistant) => config, idOf),
  context: encryptedParameter("assistants", "context", ({ context }: StoredAssistant) => context, idOf),
  metadata: encryptedParameter("assistants", "metadata", ({ metadata }: StoredAssistant) => metadata, idOf),
} as const;

const LONG_COLUMNS = ["config", "context", "metadata"] as const;
export const weightOf = (sent: readonly string[] = LONG_COLUMNS): PageWeight => ({
  columns: LONG_COLUMNS.filter((column) => sent.includes(column)),
});

export type CountedRow<Row> = Row & PageColumns & { total: number };

export const toRow = <Row>({ total: _, weight_before: __, page_rows: ___, ...row }: CountedRow<Row>) => row;

export const contains = (metadata: JsonObject) =>
  sql<SqlBool>`metadata @> ${JSON.stringify(metadata)}::jsonb`;

export interface NewAssistant {
  assistantId: string;
  graphId: string;
}

const DEFAULT_NAME = "Untitled";

/** Raw SQL for the CTE, which also creates the first version. */
const CREATE = statement(
  ASSISTANT_PARAMETERS,
  (sql) => `with assistant as (
  insert into threadloom.assistants (assistant_id, graph_id, name, description, config, context, metadata, version)
  values (${sql.assistantId}, ${sql.graphId}, ${sql.name}, ${sql.description}, ${sql.config}, ${sql.context},
    ${sql.metadata}, 1)
  on conflict (assistant_id) do nothing
  returning ${columns()}),
first_version as (
  insert into threadloom.assistant_versions (${SNAPSHOT}) select ${SNAPSHOT} from assistant)
select ${columns()} from assistant`,
);

const ONE = { assistantId: "uuid", visible: "fragment" } as const;
const FIND = statement(
  ONE,
  (sql) =>
    `select ${columns()} from threadloom.assistants a where a.assistant_id = ${sql.assistantId} and ${sql.visible}`,
);
const REMOVE = statement(
  ONE,
  (sql) => `delete from threadloom.assistants where ${sql.visible} and assistant_id = ${sql.assistantId}
  returning assistant_id`,
);

const FIRST_ID = "00000000-0000-0000-0000-000000000000";
/** Index: threads_by_metadata. */
const THREADS_OF = statement(
  { metadata: "jsonb", after: "uuid", visible: "fragment", limit: "fragment" },
  (sql) => `select thread_id from threadloom.threads
  where metadata @> ${sql.metadata} and thread_id > ${sql.after} and ${sql.visible}
  order by thread_id limit ${sql.limit}`,
);

const orderOf = ({ sort_by: key = "created_at", sort_order: direction = "desc" }: AssistantSearch) => {
  const texts: string[] = ["name", "graph_id"];
  const holds = key === "assistant_id" ? "ids" : texts.includes(key) ? "texts" : "times";
  return { list: "assistants", key, holds, id: "assistant_id", direction } satisfies KeyOrder;
};

type Filter = Pick<AssistantFilter, "graph_id" | "name" | "metadata">;

const matches = (
  visibility: Visibility<"assistants">,
  { graph_id, name, metadata }: Filter,
): RawBuilder<SqlBool> => {
  const conditions = [whereVisible(visibility, "metadata")];
  if (graph_id !== undefined) conditions.push(sql`graph_id = ${graph_id}`);
  // strpos, because ILIKE would read `%` and `_` as wildcards.
  if (name !== undefined) conditions.push(sql`strpos(lower(name), lower(${name})) > 0`);
  if (metadata !== undefined && Object.keys(metadata).length > 0) conditions.push(contains(metadata));
  return sql.join(conditions, sql` and `);
};

/** Counts the rows of a table. */
export const countWhere = async (
  database: Database,
  table: "assistants" | "assistant_versions",
  where: RawBuilder<unknown>,
  signal: AbortSignal | undefined,
): Promise<number> => {
  const [row] = await composedRead<{ count: number }>(
    database.boundedRead,
    sql`select count(*)::int as count from threadloom.${sql.raw(table)} where ${where}`,
    { signal },
  );
  return row?.count ?? 0;
};

export const createAssistantRepository = (database: Database) => {
  const { encryption } = database;
  /** Decryption needs the row's id. */
  const withId = (fields: readonly AssistantField[]): readonly AssistantField[] =>
    !encryption.isOn || fields.includes("assistant_id") ? fields : [...fields, "assistant_id"];
  const opened = (row: Partial<AssistantRow>, fields: readonly AssistantField[]): Partial<AssistantRow> => {
    const { assistant_id: id } = row;
    if (!encryption.isOn || id === undefined) return row;
    const whole = encryption.decrypted("assistants", row, { assistant_id: id });
    if (fields.includes("assistant_id")) return whole;
    const { assistant_id: _, ...rest } = whole;
    return rest;
  };

  return {
    /** Undefined if the id is taken. */
    async create(
      { value: granted }: Permission<"assistants", "create">,
      assistant: NewAssistant,
    ): Promise<AssistantRow | undefined> {
      const [row] = await CREATE.query<AssistantRow>(database, {
        ...assistant,
        name: granted.name ?? DEFAULT_NAME,
        description: granted.description,
        config: granted.config ?? {},
        context: granted.context ?? {},
        metadata: granted.metadata,
      });
      return row && encryption.decrypted("assistants", row);
    },

    async find(visibility: Visibility<"assistants">, assistantId: string): Promise<AssistantRow | undefined> {
      const visible = visibility.on("metadata");
      const [row] = await FIND.query<AssistantRow>(database, { assistantId, visible });
      return row && encryption.decrypted("assistants", row);
    },

    /** Also deletes all versions. */
    async remove(visibility: Visibility<"assistants">, assistantId: string): Promise<boolean> {
      const visible = visibility.on("metadata");
      return (await REMOVE.query(database, { assistantId, visible })).length > 0;
    },

    /** A page begins after an id instead of an offset, because the caller may have deleted found threads. */
    async threadsOf(
      visibility: Visibility<"threads">,
      assistantId: string,
      after = FIRST_ID,
      limit: number,
    ): Promise<string[]> {
      const rows = await THREADS_OF.query<{ thread_id: string }>(database, {
        metadata: JSON.stringify({ assistant_id: assistantId }),
        after,
        visible: visibility.on("metadata"),
        limit: literal(limit),
      });
      return rows.map((row) => row.thread_id);
    },

    /** `total`: undefined for an empty page. */
    async search(
      visibility: Visibility<"assistants">,
      search: AssistantSearch,
      fields: readonly AssistantField[],
      signal?: AbortSignal,
    ): Promise<{ rows: Partial<AssistantRow>[]; total: number | undefined; cursor: string | undefined }> {
      assertOnePlace(search);
      encryption.assertSearchable(search.metadata);
      const { cursor, limit, offset } = search;
      const order = orderOf(search);
      const matching = matches(visibility, search);
      const where = cursor === undefined ? matching : sql`${matching} and ${isBehindCursor(order, cursor)}`;
      const direction = sql.raw(order.direction);
      // The id breaks ties, so that pages do not overlap.
      const found = await composedRead<CountedRow<Partial<AssistantRow> & KeyColumns>>(
        database.boundedRead,
        sql`select ${sql.raw(withId(fields).join(", "))}, ${sql.raw(keyOf(order))} as cursor_key,
            assistant_id::text as cursor_id,
            (select count(*)::int from threadloom.assistants where ${where}) as total
          from threadloom.assistants where ${where}
          order by ${sql.raw(order.key)} ${direction}, assistant_id ${direction}
          limit ${limit}::bigint offset ${offset}::bigint`,
        { signal, weight: weightOf(fields) },
      );
      const total = found[0]?.total;
      return {
        rows: found.map(({ cursor_key: _, cursor_id: __, ...row }) => opened(toRow(row), fields)),
        total,
        cursor: nextCursor(order, found, { offset, matching: total ?? 0 }),
      };
    },

    async count(visibility: Visibility<"assistants">, filter: Filter, signal?: AbortSignal): Promise<number> {
      encryption.assertSearchable(filter.metadata);
      return await countWhere(database, "assistants", matches(visibility, filter), signal);
    },
  };
};

export type AssistantRepository = ReturnType<typeof createAssistantRepository>;
