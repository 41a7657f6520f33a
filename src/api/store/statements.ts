import { roomyPage } from "../../platform/database/bounded-reads.ts";
import { statement } from "../../platform/database/statement.ts";
import { invalid } from "../../platform/domain/errors.ts";
import { storableObject } from "../../platform/domain/json-schemas.ts";

/**
 * Raw SQL for lateral joins, CTEs and locks by `ctid`. Puts and deletes lock in the order of the primary key, and
 * refreshes never wait for a lock, so batches can't deadlock.
 */

/** In every statement `operations` is JSON: a list of addresses, items or searches. */
const addressesOf = (sql: { readonly operations: string }): string =>
  `jsonb_to_recordset(${sql.operations}) as wanted (namespace text[] collate "C", key text collate "C")`;

/** Expired items are invisible even before the sweep. */
const ALIVE = "(item.expires_at is null or item.expires_at > now())";

/** Filters of `Auth` apply to the value's fields, to `namespace` and to `key`. Encrypted values have no fields. */
export const filterable = (item: "item" | "wanted", isEncrypted: boolean): string => {
  const address = `jsonb_build_object('namespace', ${item}.namespace, 'key', ${item}.key)`;
  // A graph may store a list, to which `||` would append.
  return isEncrypted
    ? address
    : `(case when json_typeof(${item}.value) = 'object' then ${item}.value::jsonb || ${address} else ${address} end)`;
};

/** `visible`: a visibility's condition on `filterable`. */
const ON_VISIBLE = { operations: "jsonb", visible: "fragment" } as const;
type OnVisible = Readonly<Record<keyof typeof ON_VISIBLE, string>>;

export const GET_ITEMS = statement(
  ON_VISIBLE,
  (sql) => `
  select wanted.ordinal, item.namespace, item.key, item.value, item.created_at, item.updated_at,
         item.ttl_minutes, item.expires_at
  from jsonb_to_recordset(${sql.operations})
         as wanted (ordinal integer, namespace text[] collate "C", key text collate "C")
  join threadloom.store_items item on item.namespace = wanted.namespace and item.key = wanted.key
  where ${ALIVE} and ${sql.visible}`,
);

/** `json` has no comparison. No index holds values, so only one field becomes `jsonb`. */
const FIELD = "(item.value -> field)::jsonb";

/** filters.ts says why operands are lists. */
const MEETS_CONDITIONS = `
  (wanted.conditions is null or not exists (
    select from jsonb_to_recordset(wanted.conditions) as condition (field text, operator text, operand jsonb)
    where not coalesce(case operator
      when '$eq'  then ${FIELD} is not distinct from (operand -> 0)
      when '$ne'  then ${FIELD} is distinct from (operand -> 0)
      when '$in'  then ${FIELD} in (select jsonb_array_elements(operand -> 0))
      when '$nin' then coalesce(${FIELD} not in (select jsonb_array_elements(operand -> 0)), true)
      when '$gt'  then threadloom.store_number(${FIELD}) >  (operand ->> 0)::numeric
      when '$gte' then threadloom.store_number(${FIELD}) >= (operand ->> 0)::numeric
      when '$lt'  then threadloom.store_number(${FIELD}) <  (operand ->> 0)::numeric
      when '$lte' then threadloom.store_number(${FIELD}) <= (operand ->> 0)::numeric
    end, false)))`;

/** `everywhere` has its own statement: with `upper is null or …` the other searches could not use the index. */
const search = (everywhere: boolean, sql: OnVisible): string => `
  select wanted.ordinal, found.*
  from jsonb_to_recordset(${sql.operations})
         as wanted (ordinal integer, lower text[] collate "C", upper text[] collate "C", conditions jsonb,
                    max_items bigint, skipped_items bigint)
  cross join lateral (
    select item.namespace, item.key, item.value, item.created_at, item.updated_at,
           item.ttl_minutes, item.expires_at
    from threadloom.store_items item
    where ${everywhere ? "true" : "item.namespace >= wanted.lower and item.namespace < wanted.upper"}
      and ${ALIVE}
      and ${sql.visible}
      and ${MEETS_CONDITIONS}
    order by item.updated_at desc, item.namespace, item.key
    limit wanted.max_items offset wanted.skipped_items
  ) found
  order by wanted.ordinal, found.updated_at desc, found.namespace, found.key`;

/**
 * - Exact: an approximate index filters its nearest vectors later, so a namespace or a filter could leave too few.
 * - `limit 1`: for a list, PostgreSQL expects a hundred rows and compiles the statement (JIT), 0.9 s of 1.1 s.
 * - `materialized` reads the query once, and `offset 0` keeps vectors out of sorts.
 * - `NaN`: a zero vector has no distance and counts as unrelated.
 */
const searchByMeaning = (everywhere: boolean, sql: OnVisible): string => `
  with wanted as materialized (
    select ordinal, lower, upper, conditions, max_items, skipped_items, embedded_by, query::vector as query
    from jsonb_to_recordset(${sql.operations})
           as search (ordinal integer, lower text[] collate "C", upper text[] collate "C", conditions jsonb,
                      max_items bigint, skipped_items bigint, embedded_by text, query text)
    limit 1
  )
  select wanted.ordinal, item.namespace, item.key, item.value, item.created_at, item.updated_at,
         item.ttl_minutes, item.expires_at, 1 - found.distance as score
  from wanted
  cross join lateral (
    select item.namespace, item.key, nearest.distance
    from (
      select namespace, key, min(distance) as distance
      from (
        select vector.namespace, vector.key,
               coalesce(nullif(vector.embedding <=> wanted.query, 'NaN'), 1) as distance
        from threadloom.store_vectors vector
        where ${everywhere ? "true" : "vector.namespace >= wanted.lower and vector.namespace < wanted.upper"}
          and vector.embedded_by = wanted.embedded_by
        offset 0
      ) compared
      group by namespace, key
    ) nearest
    join threadloom.store_items item on item.namespace = nearest.namespace and item.key = nearest.key
    where ${everywhere ? "true" : "item.namespace >= wanted.lower and item.namespace < wanted.upper"}
      and ${ALIVE}
      and ${sql.visible}
      and ${MEETS_CONDITIONS}
    order by nearest.distance, item.namespace, item.key
    limit wanted.max_items offset wanted.skipped_items
  ) found
  join threadloom.store_items item on item.namespace = found.namespace and item.key = found.key
  order by wanted.ordinal, found.distance, found.namespace, found.key`;

const searches = (textOf: typeof search, everywhere: boolean) => ({
  items: statement(ON_VISIBLE, (sql) => textOf(everywhere, sql)),
  page: statement(ON_VISIBLE, (sql) => roomyPage(textOf(everywhere, sql), { columns: ["value"] })),
});
export const SEARCH = { inRange: searches(search, false), everywhere: searches(search, true) };
export const SEARCH_BY_MEANING = {
  inRange: searches(searchByMeaning, false),
  everywhere: searches(searchByMeaning, true),
};

/**
 * Recreates an expired item. Returns one row per stored item: the filter of `Auth` must hold for the old (`visible`)
 * and the new item (`allowed`).
 */
export const PUT_ITEMS = statement(
  { ...ON_VISIBLE, operations: "json", allowed: "fragment" },
  (sql) => `
  insert into threadloom.store_items as item (namespace, key, value, ttl_minutes, expires_at)
  select namespace, key, value, ttl_minutes, now() + ttl_minutes * interval '1 minute'
  from json_to_recordset(${sql.operations})
         as wanted (namespace text[] collate "C", key text collate "C", value json, ttl_minutes double precision)
  where ${sql.allowed}
  order by namespace, key
  on conflict (namespace, key) do update set
    value = excluded.value,
    ttl_minutes = excluded.ttl_minutes,
    expires_at = excluded.expires_at,
    created_at = case when ${ALIVE} then item.created_at else now() end,
    updated_at = now()
    where not ${ALIVE} or ${sql.visible}
  returning true`,
);

export const DELETE_ITEMS = statement(
  ON_VISIBLE,
  (sql) => `
  delete from threadloom.store_items item
  using (
    select item.namespace, item.key
    from ${addressesOf(sql)}
    join threadloom.store_items item on item.namespace = wanted.namespace and item.key = wanted.key
    where ${sql.visible}
    order by item.namespace, item.key
    for update of item
  ) locked
  where item.namespace = locked.namespace and item.key = locked.key`,
);

/**
 * - `skip locked`: a locked item is being changed and needs no refresh.
 * - `ctid`: by the primary key, outdated statistics made PostgreSQL lock the inner rows for each outer row. 10,000 of
 * 110,000 expired items took minutes.
 * - `ctid` misses rows that changed since the snapshot, so DELETE_ITEMS must not use it.
 */
export const REFRESH_EXPIRY = statement(
  { operations: "jsonb" },
  (sql) => `
  update threadloom.store_items
  set expires_at = case when expires_at > now() then now() + ttl_minutes * interval '1 minute' else expires_at end
  where ctid = any(array(
    select item.ctid
    from ${addressesOf(sql)}
    join threadloom.store_items item on item.namespace = wanted.namespace and item.key = wanted.key
    for update of item skip locked))`,
);

export const DELETE_EXPIRED = statement(
  { limit: "bigint" },
  (sql) => `
  delete from threadloom.store_items
  where ctid = any(array(
    select ctid
    from threadloom.store_items
    where expires_at <= now()
    order by expires_at
    limit ${sql.limit}
    for update skip locked))
  returning true`,
);

const NAMESPACES = {
  lower: "text[]",
  conditions: "jsonb",
  depth: "integer",
  from: "bigint",
  to: "bigint",
  visible: "fragment",
} as const;

const matchesAll = (sql: { readonly conditions: string }): string => `
  not exists (
    select from jsonb_to_recordset(${sql.conditions}) as condition (suffix boolean, path text[] collate "C")
    where cardinality(path) > cardinality(item.namespace) or exists (
      select from unnest(path) with ordinality as expected (label, place)
      where label <> '*' and label <> item.namespace[
        place::integer + case when suffix then cardinality(item.namespace) - cardinality(path) else 0 end]))`;

/**
 * Walks from namespace to namespace in the primary key, because `select distinct` with a depth reads all items. At the
 * depth, the next namespace differs in the first labels; above it, the smallest child adds an empty label.
 *
 * `lower`: the first possible namespace. `upper`: the exclusive end. Returns the places after `from` up to `to`.
 */
const listNamespaces = (
  sql: Readonly<Record<keyof typeof NAMESPACES, string>>,
  upper: string | undefined,
): string => {
  const first = (lower: string): string => `
    select item.namespace
    from threadloom.store_items item
    where item.namespace >= ${lower}
      ${upper === undefined ? "" : `and item.namespace < ${upper}`}
      and ${ALIVE}
      and ${sql.visible}
      and ${matchesAll(sql)}
    order by item.namespace
    limit 1`;
  return `
  with recursive step as (
    select 1::bigint as position, start.namespace from (${first(sql.lower)}) start
    union all
    select step.position + 1, next.namespace
    from step
    cross join lateral (${first(`
      case when cardinality(step.namespace) >= ${sql.depth}
        then array_append(step.namespace[1:${sql.depth} - 1], step.namespace[${sql.depth}] || chr(1))
        else array_append(step.namespace, ''::text)
      end`)}) next
    where step.position < ${sql.to}
  )
  select namespace[1:${sql.depth}] as namespace from step where position > ${sql.from} order by position`;
};

export const LIST_NAMESPACES = {
  everywhere: statement(NAMESPACES, (sql) => listNamespaces(sql, undefined)),
  inRange: statement({ ...NAMESPACES, upper: "text[]" }, (sql) => listNamespaces(sql, sql.upper)),
};

export interface FilterCondition {
  field: string;
  operator: "$eq" | "$ne" | "$in" | "$nin" | "$gt" | "$gte" | "$lt" | "$lte";
  /**
   * In a list, because SQL can't distinguish JSON's null from a missing value. An empty list stands for `undefined`,
   * which equals an absent field.
   */
  operand: [] | [unknown];
}

type Operator = FilterCondition["operator"];

const OPERATORS: readonly string[] = ["$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte"];
const isOperator = (name: string): name is Operator => OPERATORS.includes(name);

const box = (value: unknown): [] | [unknown] => (value === undefined ? [] : [value]);

const operandOf = (field: string, operator: Operator, value: unknown): [] | [unknown] => {
  switch (operator) {
    case "$eq":
    case "$ne":
      return box(value);
    case "$in":
    case "$nin":
      if (!Array.isArray(value)) throw invalid(`'filter.${field}.${operator}' must be a list.`);
      return [value];
    default: {
      const number = Number(value);
      // As text for SQL's numeric, because JSON has no infinity.
      return Number.isNaN(number) ? [] : [String(number)];
    }
  }
};

/**
 * `{field: value}` or `{field: {"$gt": 1, "$lt": 5}}`; compares objects and lists whole. Throws `invalid` for an
 * unknown operator, where LangGraph's own store finds nothing.
 */
export const filterConditions = (filter: Record<string, unknown> | undefined): FilterCondition[] => {
  if (filter === undefined) return [];
  if (!storableObject.safeParse(filter).success) {
    throw invalid("'filter' must be an object without NUL characters and halves of surrogate pairs.");
  }
  return Object.entries(filter).flatMap(([field, wanted]): FilterCondition[] => {
    if (typeof wanted !== "object" || wanted === null || Array.isArray(wanted)) {
      return [{ field, operator: "$eq", operand: box(wanted) }];
    }
    const entries = Object.entries(wanted);
    if (entries.length > 0 && entries.every(([name]) => !name.startsWith("$"))) {
      return [{ field, operator: "$eq", operand: [wanted] }];
    }
    return entries.map(([operator, value]) => {
      if (!isOperator(operator)) {
        throw invalid(
          `'filter.${field}': '${operator}' is not one of the operators ${OPERATORS.join(", ")}.`,
        );
      }
      return { field, operator, operand: operandOf(field, operator, value) };
    });
  });
};
