import { openDatabase, type Database, type DatabaseOptions } from "../database.ts";
import { distribute } from "./distributed.ts";
import { findPlacement, nodeAddress, type Placement } from "./placement.ts";

export interface PlacedOptions extends DatabaseOptions {
  /** As in `NodesOptions`. */
  processId?: string | undefined;
}

/** `placement`: of tables that are distributed over several nodes (`findPlacement`); undefined: they are not. */
export const openPlacedDatabase = (placement: Placement | undefined, options: PlacedOptions): Database => {
  const common = openDatabase(options);
  if (placement === undefined) return common;
  const { connectionString, processId, logger } = options;
  const addressOf = (node: string): string => nodeAddress(connectionString, node);
  const openNode = (node: string): Database =>
    openDatabase({ ...options, searchAddresses: undefined, connectionString: addressOf(node) });
  return distribute(common, {
    placement,
    schema: common.schema,
    processId,
    openNode,
    addressOf,
    readPlacement: () => findPlacement(connectionString, common.schema),
    logger,
  });
};
