import {
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
} from "kysely";
import type { Records } from "./database.ts";
import type { Tables } from "./tables.ts";

const refuse = (what: string) => () => Promise.reject(new Error(`Kysely is not asked for ${what} here.`));

/** The one connection that there is: who opens and closes it is not Kysely's business. */
const connectionOver = (records: Records): DatabaseConnection => ({
  async executeQuery<Row>({ sql, parameters }: { sql: string; parameters: readonly unknown[] }) {
    const { rows, rowCount } = await records.execute<Row>(sql, [...parameters]);
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
 * Kysely over a connection or a pool that is ours: its queries go the way of the raw statements, within the same
 * transaction. They are prepared like those (Kysely's own driver sends them unnamed, at 0.7 times the speed), and faults of the
 * connection are noticed alike. It is not part of a `Database`, because a graph process has one and needs no Kysely, whose 260
 * files are 9 MiB of a process. Kysely's own transactions would be beside `Database.transaction`, so they are refused.
 */
export const queriesOver = (records: Records): Kysely<Tables> =>
  new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => driverOver(records),
      createIntrospector: (database) => new PostgresIntrospector(database),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  }).withSchema(records.schema);
