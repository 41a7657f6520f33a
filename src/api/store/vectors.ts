import { statement } from "../../platform/database/statement.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { Database, Queryable } from "../../platform/database/database.ts";
import type { ItemAddress } from "./schemas.ts";
import { putItems, type NewItem } from "./repository.ts";
import { sqlState, StartError } from "../../platform/domain/errors.ts";

/** Raw SQL for the lists, CTEs and pgvector's type. The table exists only where semantic search was configured. */

const ADDRESS = `namespace text[] collate "C", key text collate "C"`;
const SAME_ITEM = (one: string, other: string): string =>
  `${one}.namespace = ${other}.namespace and ${one}.key = ${other}.key`;

const KNOWN_TEXTS = statement(
  { addresses: "jsonb" },
  (sql) => `
  select vector.namespace, vector.key, encode(vector.text_hash, 'hex') as hash
  from jsonb_to_recordset(${sql.addresses}) as wanted (${ADDRESS})
  join threadloom.store_vectors vector on ${SAME_ITEM("vector", "wanted")}`,
);

/** `texts`: all texts of these items. Deletes vectors of other texts and returns texts without a vector. */
const FORGET_OTHER_TEXTS = statement(
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
const ADD_VECTORS = statement(
  { texts: "jsonb", model: "text" },
  (sql) => `
  insert into threadloom.store_vectors (namespace, key, text_hash, embedded_by, embedding)
  select namespace, key, decode(hash, 'hex'), ${sql.model}, embedding::vector
  from jsonb_to_recordset(${sql.texts}) as text_of_item (${ADDRESS}, hash text, embedding text)
  order by namespace, key
  on conflict do nothing`,
);

/** `hash` is hexadecimal. */
export interface TextOfItem extends ItemAddress {
  hash: string;
}

/** Rolls the transaction back. */
class VectorMissing extends Error {}

const addressJson = (addresses: readonly ItemAddress[]): string =>
  JSON.stringify(addresses.map(({ namespace, key }) => ({ namespace, key })));

export const createVectorRepository = (database: Database) => ({
  async knownTexts(
    _visibility: Visibility<"store">,
    addresses: readonly ItemAddress[],
  ): Promise<TextOfItem[]> {
    if (addresses.length === 0) return [];
    return await KNOWN_TEXTS.query<TextOfItem>(database, { addresses: addressJson(addresses) });
  },

  /**
   * Stores items like `StoreRepository.put`, and makes `texts` their only indexed texts. Returns false and stores
   * nothing if the database and `vectors` lack a text's vector.
   * @param vectors by hash, in pgvector's text form
   * @param embeddedBy the model
   */
  async put(
    visibility: Visibility<"store">,
    items: readonly NewItem[],
    texts: readonly TextOfItem[],
    vectors: ReadonlyMap<string, string>,
    embeddedBy: string,
  ): Promise<boolean> {
    if (items.length === 0) return true;
    try {
      await database.transaction(async (transaction) => {
        // The put locks the items and so their vectors.
        await putItems(transaction, visibility, items);
        const missing = await FORGET_OTHER_TEXTS.query<TextOfItem>(transaction, {
          addresses: addressJson(items),
          texts: JSON.stringify(texts),
        });
        if (missing.length === 0) return;
        const rows = missing.map((text) => {
          const embedding = vectors.get(text.hash);
          if (embedding === undefined) throw new VectorMissing();
          return { ...text, embedding };
        });
        await ADD_VECTORS.query(transaction, { texts: JSON.stringify(rows), model: embeddedBy });
      });
      return true;
    } catch (error) {
      if (error instanceof VectorMissing) return false;
      throw error;
    }
  },
});

export type VectorRepository = ReturnType<typeof createVectorRepository>;

/** Lets one of several starting replicas create the table. */
const VECTOR_TABLE_LOCK = 7_448_120_265;
const INSUFFICIENT_PRIVILEGE = "42501";

const CREATE_EXTENSION = "create extension if not exists vector";

/**
 * One vector per distinct text of an item. `text_hash` is short, because the address may take nearly all of an index
 * entry.
 */
const createTable = (dims: number): string => `
  create table if not exists threadloom.store_vectors (
    namespace   text[] collate "C" not null,
    key         text collate "C" not null,
    text_hash   bytea not null,
    embedded_by text not null,
    embedding   vector(${dims}) not null,
    primary key (namespace, key, text_hash),
    foreign key (namespace, key) references threadloom.store_items on delete cascade
  )`;

const NO_EXTENSION =
  "langgraph.json configures 'store.index', but the PostgreSQL server has no pgvector: install it there (Debian and " +
  "Ubuntu: the package postgresql-<version>-pgvector; Docker: the image pgvector/pgvector), where no DATABASE_URL is " +
  "set name such a server with it, or take 'store.index' out.";
const NO_PRIVILEGE =
  "langgraph.json configures 'store.index', but this database user may not create the extension pgvector: let an " +
  `administrator of this database run "${CREATE_EXTENSION}" once.`;

const ensureExtension = async (transaction: Queryable): Promise<void> => {
  const [state] = await transaction.query<{ installed: boolean; available: boolean }>(
    `select exists (select from pg_extension where extname = 'vector') as installed,
            exists (select from pg_available_extensions where name = 'vector') as available`,
  );
  if (state?.installed === true) return;
  if (state?.available !== true) throw new StartError(NO_EXTENSION);
  await transaction.query(CREATE_EXTENSION).catch((cause: unknown) => {
    throw sqlState(cause) === INSUFFICIENT_PRIVILEGE ? new StartError(NO_PRIVILEGE, { cause }) : cause;
  });
};

/** Also true for a former configuration. */
export const hasVectorTable = async (database: Queryable): Promise<boolean> => {
  const [row] = await database.query<{ found: boolean }>(
    "select to_regclass('threadloom.store_vectors') is not null as found",
  );
  return row?.found === true;
};

/**
 * Not a migration, because migrations must run without pgvector. Throws StartError without pgvector, or if stored
 * vectors have another length.
 */
export const prepareVectorTable = async (database: Database, dims: number): Promise<void> =>
  await database.transaction(async (transaction) => {
    await transaction.query(`select pg_advisory_xact_lock(${VECTOR_TABLE_LOCK})`);
    await ensureExtension(transaction);
    // An existing table needs no right to create one.
    if (!(await hasVectorTable(transaction))) await transaction.query(createTable(dims));
    const [column] = await transaction.query<{ dims: number }>(
      `select atttypmod as dims from pg_attribute
       where attrelid = 'threadloom.store_vectors'::regclass and attname = 'embedding'`,
    );
    if (column?.dims !== dims) {
      throw new StartError(
        `langgraph.json says 'store.index.dims' is ${dims}, but the vectors in this database have ${column?.dims} ` +
          `numbers: put it back, or run 'drop table ${database.schema}.store_vectors' and store the items for ` +
          "semantic search again.",
      );
    }
  });
