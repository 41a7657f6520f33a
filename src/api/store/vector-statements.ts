import { statement } from "../../platform/database/statement.ts";

/** Raw SQL for the lists, CTEs and pgvector's type. The table exists only where semantic search was configured. */

const ADDRESS = `namespace text[] collate "C", key text collate "C"`;
const SAME_ITEM = (one: string, other: string): string =>
  `${one}.namespace = ${other}.namespace and ${one}.key = ${other}.key`;

export const KNOWN_TEXTS = statement(
  { addresses: "jsonb" },
  (sql) => `
  select vector.namespace, vector.key, encode(vector.text_hash, 'hex') as hash
  from jsonb_to_recordset(${sql.addresses}) as wanted (${ADDRESS})
  join threadloom.store_vectors vector on ${SAME_ITEM("vector", "wanted")}`,
);

/** `texts`: all texts of these items. Deletes vectors of other texts and returns texts without a vector. */
export const FORGET_OTHER_TEXTS = statement(
  { addresses: "jsonb", texts: "jsonb" },
  (sql) => `
  with wanted as materialized (
    select namespace, key, decode(hash, 'hex') as text_hash
    from jsonb_to_recordset(${sql.texts}) as text_of_item (${ADDRESS}, hash text)
  ), forgotten as (
    delete from threadloom.store_vectors vector
    using jsonb_to_recordset(${sql.addresses}) as address (${ADDRESS})
    where ${SAME_ITEM("vector", "address")}
      and not exists (
        select from wanted where ${SAME_ITEM("wanted", "vector")} and wanted.text_hash = vector.text_hash)
  )
  select namespace, key, encode(text_hash, 'hex') as hash
  from wanted
  where not exists (
    select from threadloom.store_vectors vector
    where ${SAME_ITEM("vector", "wanted")} and vector.text_hash = wanted.text_hash)`,
);

/** `texts`: with their vectors. */
export const ADD_VECTORS = statement(
  { texts: "jsonb", model: "text" },
  (sql) => `
  insert into threadloom.store_vectors (namespace, key, text_hash, embedded_by, embedding)
  select namespace, key, decode(hash, 'hex'), ${sql.model}, embedding::vector
  from jsonb_to_recordset(${sql.texts}) as text_of_item (${ADDRESS}, hash text, embedding text)
  order by namespace, key
  on conflict do nothing`,
);
