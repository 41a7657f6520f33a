import pg from "pg";
import { distributeTables, stepsOf } from "../../src/platform/database/distributed/distribute.ts";
import { readPlacement, type Placement } from "../../src/platform/database/distributed/placement.ts";
import { DEFAULT_SCHEMA } from "../../src/platform/database/schema.ts";

/** More than nodes, so that a node has several. */
const SHARDS = 4;

/** Addresses of a superuser, from TEST_CITUS_NODES; the first is the coordinator's. Empty: there is no cluster. */
export const citusNodes = (): string[] => (process.env["TEST_CITUS_NODES"] ?? "").split(",").filter(Boolean);

export const onServer = async <T>(
  connectionString: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const client = new pg.Client({ connectionString });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

export const databaseNamed = (serverUrl: string, database: string): string => {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
};

/** Makes the migrated database of the coordinator a cluster of all nodes, on which the tables are distributed. */
export const distributeTemplate = async (
  coordinator: string,
  others: readonly string[],
  database: string,
): Promise<Placement | undefined> => {
  for (const node of others) {
    await onServer(node, (client) => client.query(`create database ${database}`));
    await onServer(databaseNamed(node, database), (client) => client.query("create extension citus"));
  }
  const placement = await onServer(databaseNamed(coordinator, database), async (client) => {
    await client.query("create extension citus");
    const { hostname, port } = new URL(coordinator);
    await client.query("select citus_set_coordinator_host($1, $2)", [hostname, Number(port)]);
    for (const node of others) {
      const url = new URL(node);
      await client.query("select citus_add_node($1, $2)", [url.hostname, Number(url.port)]);
    }
    await distributeTables(client, stepsOf(DEFAULT_SCHEMA, database, SHARDS));
    return await readPlacement(client, DEFAULT_SCHEMA);
  });
  // Its daemon and its connections between nodes would keep the database from being copied.
  for (const node of [coordinator, ...others])
    await onServer(node, (client) =>
      client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()`,
        [database],
      ),
    );
  return placement;
};
