import { openDatabase, type Database, type DatabaseOptions } from "../database.ts";
import { distribute } from "./distributed.ts";
import { findPlacement, nodeAddress, type Placement } from "./placement.ts";

/** `placement`: of tables that are distributed over several nodes (`findPlacement`); undefined: they are not. */
export const openPlacedDatabase = (placement: Placement | undefined, options: DatabaseOptions): Database => {
  const common = openDatabase(options);
  if (placement === undefined) return common;
  const { connectionString, logger } = options;
  const addressOf = (node: string): string => nodeAddress(connectionString, node);
  const openNode = (node: string): Database =>
    openDatabase({ ...options, searchAddresses: undefined, connectionString: addressOf(node) });
  return distribute(common, {
    placement,
    schema: common.schema,
    openNode,
    addressOf,
    readPlacement: () => findPlacement(connectionString, common.schema),
    logger,
  });
};
