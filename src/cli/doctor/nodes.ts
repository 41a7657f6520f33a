import type pg from "pg";
import { findPlacement, nodeAddress, partsByNode } from "../../platform/database/distributed/placement.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { fail, ok, type Check } from "./checks.ts";

/** Whether a server here would reach the nodes of a distributed database. Undefined without distribution. */
export const checkNodes = async (
  client: pg.Client,
  connectionString: string,
  schema: string,
): Promise<Check | undefined> => {
  let parts: ReadonlyMap<string, number>;
  try {
    parts = await partsByNode(client, schema);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return fail("Nodes", error.message, "See docs/scaling.md.");
  }
  if (parts.size === 0) return undefined;
  const unreachable: string[] = [];
  for (const node of parts.keys()) {
    try {
      await findPlacement(nodeAddress(connectionString, node), schema);
    } catch (error) {
      unreachable.push(`${node}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return unreachable.length > 0
    ? fail(
        "Nodes",
        unreachable.join("\n"),
        "Servers need the nodes' addresses as citus_add_node was given them, with the user of DATABASE_URL.",
      )
    : ok("Nodes", [...parts].map(([node, count]) => `${node} has ${count} parts of the threads`).join("\n"));
};
