import { sql, type Expression, type ExpressionBuilder, type SqlBool } from "kysely";
import type { Visibility } from "../../access/visibility.ts";
import { queriesOver } from "../../database/queries.ts";
import { whereVisible } from "../../access/where-visible.ts";
import { roomyPage } from "../../database/bounded-reads.ts";
import type { Database } from "../../database/database.ts";
import { ASSISTANT_JSON, openOf } from "../../encryption/columns.ts";
import { assertSearchable } from "../../encryption/json.ts";
import type { AssistantRow, Tables } from "../../database/tables.ts";
import { contains, toRow, weightOf, type CountedRow } from "../columns.ts";
import type { AssistantField, AssistantFilter, AssistantSearch } from "../schemas.ts";

type Filter = Pick<AssistantFilter, "graph_id" | "name" | "metadata">;

const matches =
  (visibility: Visibility<"assistants">, { graph_id, name, metadata }: Filter) =>
  (expressions: ExpressionBuilder<Tables, "assistants">) => {
    const conditions: Expression<SqlBool>[] = [whereVisible(visibility, "metadata")];
    if (graph_id !== undefined) conditions.push(expressions("graph_id", "=", graph_id));
    // strpos, not ILIKE: `%` and `_` in what the user typed are no wildcards.
    if (name !== undefined) conditions.push(sql<SqlBool>`strpos(lower(name), lower(${name})) > 0`);
    if (metadata !== undefined && Object.keys(metadata).length > 0) {
      conditions.push(contains(metadata));
    }
    return expressions.and(conditions);
  };

/** The SQL that finds assistants. */
export const createSearchRepository = (database: Database) => {
  const kysely = queriesOver(database);
  const { cipher } = database;
  /** Encrypted columns can only be opened with the id of the row, so it is read even where the caller did not ask for it. */
  const withId = (fields: readonly AssistantField[]): readonly AssistantField[] =>
    cipher === undefined || fields.includes("assistant_id") ? fields : [...fields, "assistant_id"];
  const opened = (row: Partial<AssistantRow>, fields: readonly AssistantField[]): Partial<AssistantRow> => {
    const { assistant_id: id } = row;
    if (cipher === undefined || id === undefined) return row;
    const whole = openOf(cipher, ASSISTANT_JSON, { assistant_id: id }, row);
    if (fields.includes("assistant_id")) return whole;
    const { assistant_id: _, ...rest } = whole;
    return rest;
  };

  return {
    /** A page, and in the same round trip how many there are in all; undefined if the page is empty. */
    async search(
      visibility: Visibility<"assistants">,
      search: AssistantSearch,
      fields: readonly AssistantField[],
      signal?: AbortSignal,
    ): Promise<{ rows: Partial<AssistantRow>[]; total: number | undefined }> {
      const order = search.sort_order ?? "desc";
      const sortBy = search.sort_by ?? "created_at";
      assertSearchable(cipher, search.metadata);
      const filter = matches(visibility, search);
      let query = kysely
        .selectFrom("assistants")
        .select(withId(fields))
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
      return { rows: found.map((row) => opened(toRow(row), fields)), total: found[0]?.total };
    },

    async count(visibility: Visibility<"assistants">, filter: Filter, signal?: AbortSignal): Promise<number> {
      assertSearchable(cipher, filter.metadata);
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
