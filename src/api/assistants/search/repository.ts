import { sql, type Expression, type ExpressionBuilder, type SqlBool } from "kysely";
import type { Visibility } from "../../../access/visibility.ts";
import { queriesOver } from "../../../platform/database/queries.ts";
import { whereVisible } from "../../../access/where-visible.ts";
import { roomyPage } from "../../../platform/database/bounded-reads.ts";
import type { Database } from "../../../platform/database/database.ts";
import { assertOnePlace } from "../../../platform/domain/cursors.ts";
import {
  isBehindCursor,
  keyOf,
  nextCursor,
  type KeyColumns,
  type KeyOrder,
} from "../../../platform/domain/key-order.ts";
import type { AssistantRow, Tables } from "../../../platform/database/tables.ts";
import { contains, toRow, weightOf, type CountedRow } from "../columns.ts";
import type { AssistantField, AssistantFilter, AssistantSearch } from "../schemas.ts";

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

export const createSearchRepository = (database: Database) => {
  const kysely = queriesOver(database);
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

export type SearchRepository = ReturnType<typeof createSearchRepository>;
