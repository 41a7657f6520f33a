import {
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
} from "kysely";
import type pg from "pg";
import type { Tables } from "./tables.ts";

/** Sends one statement with the values of its parameters. */
type Send = (text: string, values: unknown[]) => Promise<pg.QueryResult>;

const refuse = (what: string) => () => Promise.reject(new Error(`Kysely is not asked for ${what} here.`));

/** The one connection of a `Send`: who opens and closes it is not Kysely's business. */
const connectionOver = (send: Send): DatabaseConnection => ({
  async executeQuery<Row>({ sql, parameters }: { sql: string; parameters: readonly unknown[] }) {
    const { rows, rowCount } = await send(sql, [...parameters]);
    const result: QueryResult<Row> = { rows: rows as Row[] };
    return rowCount === null ? result : { ...result, numAffectedRows: BigInt(rowCount) };
  },
  streamQuery() {
    throw new Error("Kysely is not asked for streams here.");
  },
});

const driverOver = (send: Send): Driver => {
  const connection = connectionOver(send);
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
 * connection are noticed alike. Kysely's own transactions would be beside `Database.transaction`, so they are refused.
 */
export const createQueries = (schema: string, send: Send): Kysely<Tables> =>
  new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => driverOver(send),
      createIntrospector: (database) => new PostgresIntrospector(database),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  }).withSchema(schema);
