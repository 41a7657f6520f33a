import type { Config } from "../../platform/config/config.ts";
import { acceleratorsOf } from "../../platform/database/accelerators.ts";
import { isUnusable, unusableReason } from "../../platform/database/passing-faults.ts";
import { assertSessions } from "../../platform/database/pooling.ts";
import { sqlState, StartError } from "../../platform/domain/errors.ts";
import { databaseName } from "../banner.ts";
import { fail, ok, type Check } from "./checks.ts";

const NAME = "Sessions";

/** A pooler in transaction mode gives no whole sessions. */
export const checkSessions = async (config: Config): Promise<Check[]> => {
  const { databaseUrl, databaseDirectUrl, databasePreparedStatements: preparedStatements } = config;
  if (databaseUrl === undefined) return [];
  const accelerators = acceleratorsOf(config);
  if (!accelerators.advisoryLocks || !accelerators.sessions)
    return [ok(NAME, "not looked for, as DATABASE_ADVISORY_LOCKS or DATABASE_SESSIONS says")];
  const addresses = {
    connectionString: databaseUrl,
    directConnectionString: databaseDirectUrl,
    preparedStatements,
  };
  try {
    await assertSessions(addresses, accelerators);
  } catch (error) {
    if (error instanceof StartError)
      return [fail(NAME, error.message, "A start would be refused; docs/scaling.md says more of poolers.")];
    if (!isUnusable(error) && sqlState(error) === undefined) throw error;
    const advice = "See to it that it runs, and that address, user and password of DATABASE_URL are right.";
    return [fail(NAME, `${databaseName(databaseUrl)}: ${unusableReason(error)}`, advice)];
  }
  const by = databaseDirectUrl === undefined ? "DATABASE_URL" : "DATABASE_DIRECT_URL";
  return [ok(NAME, `connections by ${by} are sessions, which no pooler shares out`)];
};
