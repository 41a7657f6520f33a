import { pino } from "pino";
import { openDatabase, type Database, type DatabaseOptions } from "../../src/platform/database/database.ts";

/** Opens a database as a server does, with one connection and without a visible log. */
export const openTestDatabase = (
  connectionString: string,
  options: Partial<Omit<DatabaseOptions, "connectionString">> = {},
): Database =>
  openDatabase({
    connectionString,
    poolSize: 1,
    applicationName: "threadloom test",
    preparedStatements: true,
    logger: pino({ level: "silent" }),
    ...options,
  });
