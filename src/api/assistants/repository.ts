import { sql, type Expression, type ExpressionBuilder, type SqlBool } from "kysely";
import { type Permission, type Visibility, whereVisible } from "../../access/visibility.ts";
import { roomyPage, type PageColumns, type PageWeight } from "../../platform/database/bounded-reads.ts";
import { compileOnce } from "../../platform/database/compile-once.ts";
import type { Database } from "../../platform/database/database.ts";
import { queriesOver } from "../../platform/database/queries.ts";
import { encryptedParameter, statement } from "../../platform/database/statement.ts";
import type { AssistantRow, AssistantVersionRow, Tables } from "../../platform/database/tables.ts";
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

export const COLUMNS = ASSISTANT_FIELDS satisfies readonly (keyof AssistantRow)[];
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

export const LONG_COLUMNS = ["config", "context", "metadata"] as const;
export const weightOf = (sent: readonly string[]): PageWeight => ({
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
  returning ${COLUMNS.join(", ")}),
first_version as (
  insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")}) select ${SNAPSHOT.join(", ")} from assistant)
select ${COLUMNS.join(", ")} from assistant`,
);

const orderOf = ({ sort_by: key = "created_at", sort_order: direction = "desc" }: AssistantSearch) => {
  const texts: string[] = ["name", "graph_id"];
  const holds = key === "assistant_id" ? "ids" : texts.includes(key) ? "texts" : "times";
  return { list: "assistants", key, holds, id: "assistant_id", direction } satisfies KeyOrder;
};

type Filter = Pick<AssistantFilter, "graph_id" | "name" | "metadata">;

const matches =
  (visibility: Visibility<"assistants">, { graph_id, name, metadata }: Filter) =>
  (expressions: ExpressionBuilder<Tables, "assistants">) => {
    const conditions: Expression<SqlBool>[] = [whereVisible(visibility, "metadata")];
    if (graph_id !== undefined) conditions.push(expressions("graph_id", "=", graph_id));
    // strpos, because ILIKE would read `%` and `_` as wildcards.
    if (name !== undefined) conditions.push(sql<SqlBool>`strpos(lower(name), lower(${name})) > 0`);
    if (metadata !== undefined && Object.keys(metadata).length > 0) {
      conditions.push(contains(metadata));
    }
    return expressions.and(conditions);
  };

export const createAssistantRepository = (database: Database) => {
  const kysely = queriesOver(database);
  const { encryption } = database;
  const findOne = compileOnce(
    { assistantId: ({ assistantId }: { assistantId: string }) => assistantId },
    ({ assistantId }, visibility: Visibility<"assistants">) =>
      kysely
        .selectFrom("assistants")
        .select(COLUMNS)
        .where("assistant_id", "=", assistantId)
        .where(whereVisible(visibility, "metadata")),
  );
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
      const [row] = await findOne(database, visibility, { assistantId });
      return row && encryption.decrypted("assistants", row);
    },

    /** Also deletes all versions. */
    async remove(visibility: Visibility<"assistants">, assistantId: string): Promise<boolean> {
      const { numDeletedRows } = await kysely
        .deleteFrom("assistants")
        .where("assistant_id", "=", assistantId)
        .where(whereVisible(visibility, "metadata"))
        .executeTakeFirstOrThrow();
      return numDeletedRows > 0n;
    },

    /**
     * A page begins after an id instead of an offset, because the caller may have deleted found threads. Index:
     * threads_by_metadata.
     */
    async threadsOf(
      visibility: Visibility<"threads">,
      assistantId: string,
      after: string | undefined,
      limit: number,
    ): Promise<string[]> {
      const rows = await queriesOver(database)
        .selectFrom("threads")
        .select("thread_id")
        .where(contains({ assistant_id: assistantId }))
        .$if(after !== undefined, (query) => query.where("thread_id", ">", after ?? ""))
        .where(whereVisible(visibility, "metadata"))
        .orderBy("thread_id")
        .limit(limit)
        .execute();
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
      const order = orderOf(search);
      const { cursor } = search;
      const filter = (expressions: ExpressionBuilder<Tables, "assistants">) =>
        expressions.and([
          matches(visibility, search)(expressions),
          ...(cursor === undefined ? [] : [isBehindCursor(order, cursor)]),
        ]);
      let query = kysely
        .selectFrom("assistants")
        .select(withId(fields))
        .select([
          sql.raw<string | null>(keyOf(order)).as("cursor_key"),
          sql<string>`assistant_id::text`.as("cursor_id"),
        ])
        .select((expressions) =>
          expressions
            .selectFrom("assistants")
            .select(sql<number>`count(*)::int`.as("total"))
            .where(filter)
            .as("total"),
        )
        .where(filter)
        .orderBy(order.key, order.direction);
      // The id breaks ties, so that pages do not overlap.
      if (order.key !== "assistant_id") query = query.orderBy("assistant_id", order.direction);
      const page = query.limit(search.limit).offset(search.offset).compile();
      const found = await database.boundedRead<CountedRow<Partial<AssistantRow> & KeyColumns>>(
        roomyPage(page.sql, weightOf(fields)),
        [...page.parameters],
        signal,
      );
      const total = found[0]?.total;
      return {
        rows: found.map(({ cursor_key: _, cursor_id: __, ...row }) => opened(toRow(row), fields)),
        total,
        cursor: nextCursor(order, found, { offset: search.offset, matching: total ?? 0 }),
      };
    },

    async count(visibility: Visibility<"assistants">, filter: Filter, signal?: AbortSignal): Promise<number> {
      encryption.assertSearchable(filter.metadata);
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
