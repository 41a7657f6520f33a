import { addressesOf } from "../../platform/database/addresses.js";
import { withProbe } from "../../platform/database/probe.ts";
import { databaseName } from "../banner.ts";
import { ok, warn, type Check } from "./checks.ts";

/** Whether each address of a list could be used after the failure of the others. Undefined unless there are several. */
export const checkAddresses = async (url: string | undefined): Promise<Check | undefined> => {
  const addresses = url === undefined ? [] : addressesOf(url);
  if (addresses.length < 2) return undefined;
  const unusable: string[] = [];
  for (const address of addresses) {
    try {
      await withProbe(address, (client) => client.query("select 1"));
    } catch (error) {
      unusable.push(`${databaseName(address)}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return unusable.length === 0
    ? ok("Addresses", `each of ${addresses.length} can be used`)
    : warn("Addresses", unusable.join("\n"), "A server that loses its database can't continue there.");
};
