import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  sql,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  type RawBuilder,
} from "kysely";
import { roomyPage, type BoundedReads, type PageWeight } from "./bounded-reads.ts";
import type { Records } from "./database.ts";
import type { Fragment } from "./statement.ts";
import type { Tables } from "./tables.ts";

const POSTGRES = {
  createAdapter: () => new PostgresAdapter(),
  createIntrospector: (database: Kysely<unknown>) => new PostgresIntrospector(database),
  createQueryCompiler: () => new PostgresQueryCompiler(),
};

const refuse = (what: string) => () => Promise.reject(new Error(`Kysely is not asked for ${what} here.`));

const connectionOver = (records: Records): DatabaseConnection => ({
  async executeQuery<Row>({ sql: text, parameters }: { sql: string; parameters: readonly unknown[] }) {
    const { rows, rowCount } = await records.execute<Row>(text, [...parameters]);
    const result: QueryResult<Row> = { rows };
    return rowCount === null ? result : { ...result, numAffectedRows: BigInt(rowCount) };
  },
  streamQuery() {
    throw new Error("Kysely is not asked for streams here.");
  },
});

const driverOver = (records: Records): Driver => {
  const connection = connectionOver(records);
  const nothing = () => Promise.resolve();
  return {
    init: nothing,
    acquireConnection: () => Promise.resolve(connection),
    releaseConnection: nothing,
    destroy: nothing,
    beginTransaction: refuse("transactions"),
    commitTransaction: refuse("transactions"),
    rollbackTransaction: refuse("transactions"),
  };
};

/**
 * Kysely's own driver has 0.7 times the speed. Not part of `Database`, because graph processes need no Kysely (260
 * files, 9 MiB).
 */
export const queriesOver = (records: Records): Kysely<Tables> =>
  new Kysely<Tables>({
    dialect: { ...POSTGRES, createDriver: () => driverOver(records) },
  }).withSchema(records.schema);

const COMPILER = new Kysely<Tables>({ dialect: { ...POSTGRES, createDriver: () => new DummyDriver() } });

/** `weight` may cut the page; see `roomyPage`. */
export const composedRead = async <Row>(
  read: BoundedReads["boundedRead"],
  query: RawBuilder<unknown>,
  { signal, weight }: { signal?: AbortSignal | undefined; weight?: PageWeight } = {},
): Promise<Row[]> => {
  const { sql: text, parameters } = query.compile(COMPILER);
  return await read<Row>(weight === undefined ? text : roomyPage(text, weight), [...parameters], signal);
};

export const sqlOf = <Value>({ texts, values }: Fragment): RawBuilder<Value> =>
  sql<Value>(texts as unknown as TemplateStringsArray, ...values);
