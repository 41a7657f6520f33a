import type { Config } from "../../platform/config/config.ts";
import { isUnusable, unusableReason } from "../../platform/database/passing-faults.ts";
import { assertSessions } from "../../platform/database/pooling.ts";
import { sqlState, StartError } from "../../platform/domain/errors.ts";
import { databaseName } from "../banner.ts";
import { fail, ok, type Check } from "./checks.ts";

const NAME = "Sessions";

/** A pooler in transaction mode gives no session to a client. */
export const checkSessions = async (config: Config): Promise<Check[]> => {
  const { databaseUrl, databaseDirectUrl, databasePreparedStatements: preparedStatements } = config;
  if (databaseUrl === undefined) return [];
  const addresses = {
    connectionString: databaseUrl,
    directConnectionString: databaseDirectUrl,
    preparedStatements,
  };
  try {
    await assertSessions(addresses);
  } catch (error) {
    if (error instanceof StartError)
      return [fail(NAME, error.message, "The server refuses to start. See docs/scaling.md about poolers.")];
    if (!isUnusable(error) && sqlState(error) === undefined) throw error;
    const advice =
      "Check that the database runs, and that the address, user and password in DATABASE_URL are right.";
    return [fail(NAME, `${databaseName(databaseUrl)}: ${unusableReason(error)}`, advice)];
  }
  const by = databaseDirectUrl === undefined ? "DATABASE_URL" : "DATABASE_DIRECT_URL";
  return [ok(NAME, `connections of ${by} are whole sessions`)];
};
