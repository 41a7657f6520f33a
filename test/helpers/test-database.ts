import { pino } from "pino";
import { testPlacement } from "./database.ts";
import type { Database, DatabaseOptions } from "../../src/platform/database/database.ts";
import { openPlacedDatabase } from "../../src/platform/database/distributed/open.ts";

/** Opens a database as a server does, with one connection and without a visible log. */
export const openTestDatabase = (
  connectionString: string,
  options: Partial<Omit<DatabaseOptions, "connectionString">> = {},
): Database =>
  openPlacedDatabase(testPlacement(), {
    connectionString,
    poolSize: 1,
    applicationName: "threadloom test",
    preparedStatements: true,
    logger: pino({ level: "silent" }),
    ...options,
  });
