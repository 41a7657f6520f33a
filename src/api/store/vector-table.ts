import { againIfOthersWereFirst } from "../../platform/database/accelerators.ts";
import type { Database, Queryable } from "../../platform/database/database.ts";
import { sqlState, StartError } from "../../platform/domain/errors.ts";

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
 * vectors have another length. `advisoryLocks`: see accelerators.ts.
 */
export const prepareVectorTable = async (
  database: Database,
  dims: number,
  { advisoryLocks = true }: { advisoryLocks?: boolean } = {},
): Promise<void> => {
  const prepare = () =>
    database.transaction(async (transaction) => {
      if (advisoryLocks) await transaction.query(`select pg_advisory_xact_lock(${VECTOR_TABLE_LOCK})`);
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
  await againIfOthersWereFirst(prepare);
};
