/**
 * Raw for the lists, CTEs and pgvector's type. The table of vector-table.ts exists only where semantic search was
 * configured.
 */

const ADDRESS = `namespace text[] collate "C", key text collate "C"`;
const SAME_ITEM = (one: string, other: string): string =>
  `${one}.namespace = ${other}.namespace and ${one}.key = ${other}.key`;

/** $1 addresses. */
export const KNOWN_TEXTS = `
  select vector.namespace, vector.key, encode(vector.text_hash, 'hex') as hash
  from jsonb_to_recordset($1::jsonb) as wanted (${ADDRESS})
  join threadloom.store_vectors vector on ${SAME_ITEM("vector", "wanted")}`;

/**
 * $1 addresses, $2 all texts of these items. Deletes vectors of other texts and returns texts without a vector. The
 * transaction holds the items' locks.
 */
export const FORGET_OTHER_TEXTS = `
  with wanted as materialized (
    select namespace, key, decode(hash, 'hex') as text_hash
    from jsonb_to_recordset($2::jsonb) as text_of_item (${ADDRESS}, hash text)
  ), forgotten as (
    delete from threadloom.store_vectors vector
    using jsonb_to_recordset($1::jsonb) as address (${ADDRESS})
    where ${SAME_ITEM("vector", "address")}
      and not exists (
        select from wanted where ${SAME_ITEM("wanted", "vector")} and wanted.text_hash = vector.text_hash)
  )
  select namespace, key, encode(text_hash, 'hex') as hash
  from wanted
  where not exists (
    select from threadloom.store_vectors vector
    where ${SAME_ITEM("vector", "wanted")} and vector.text_hash = wanted.text_hash)`;

/** $1 texts with their vectors, $2 the model. */
export const ADD_VECTORS = `
  insert into threadloom.store_vectors (namespace, key, text_hash, embedded_by, embedding)
  select namespace, key, decode(hash, 'hex'), $2::text, embedding::vector
  from jsonb_to_recordset($1::jsonb) as text_of_item (${ADDRESS}, hash text, embedding text)
  order by namespace, key
  on conflict do nothing`;
