import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { kill } from "node:process";
import { promisify } from "node:util";
import pg from "pg";
import {
  createCluster,
  dataOf,
  findPostmaster,
  readPassword,
  startServer,
  SUPERUSER,
} from "../../src/platform/database/embedded/embedded.ts";
import {
  findBinaries,
  findPlace,
  give,
  makePlace,
  type ClusterPlace,
} from "../../src/platform/database/embedded/place.ts";
import { eventually } from "./conditions.ts";
import { freePort } from "./free-port.ts";
import { startTcpProxy } from "./tcp-proxy.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const SETTINGS = {
  fsync: "off",
  full_page_writes: "off",
  max_connections: "100",
  wal_level: "replica",
  max_wal_senders: "4",
  wal_keep_size: "256MB",
};

/** A primary and its standby, which confirms each commit. */
export interface ServerPair {
  /** The address of a new database, through a proxy that leads to the primary. */
  create(name: string): Promise<string>;
  /** Like a power failure. Then the standby becomes the primary, and the proxy leads there. */
  failOver(): Promise<void>;
  close(): Promise<void>;
}

const placeIn = async (folder: string): Promise<ClusterPlace> => {
  const place = await findPlace(folder);
  await makePlace(place);
  return place;
};

const stopHard = async (place: ClusterPlace): Promise<void> => {
  const postmaster = await findPostmaster(place);
  if (postmaster === undefined) return;
  kill(postmaster.pid, "SIGQUIT");
  await eventually("the server is gone", async () => (await findPostmaster(place)) === undefined);
};

const withClient = async <Result>(
  connectionString: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> => {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

/** As pg_basebackup does it, which is not among the binaries. */
const copy = async (client: pg.Client, from: ClusterPlace, to: ClusterPlace, primary: string) => {
  await client.query("select pg_backup_start('copy', true)");
  await promisify(execFile)("cp", ["-a", join(from.folder, "cluster"), join(to.folder, "cluster")]);
  const { rows } = await client.query<{ labelfile: string }>("select labelfile from pg_backup_stop(false)");
  const data = dataOf(to);
  await rm(join(data, "postmaster.pid"), { force: true });
  const files = {
    backup_label: rows[0]!.labelfile,
    "standby.signal": "",
    "postgresql.auto.conf": `primary_conninfo = '${primary}'\n`,
  };
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(data, name), content);
    await give(join(data, name), to.user);
  }
};

export const startServerPair = async (): Promise<ServerPair> => {
  const folder = await temporaryFolder();
  const places = await Promise.all(
    ["primary", "standby"].map((name) => placeIn(join(folder.dataFolder, name))),
  );
  const [primary, standby] = places as [ClusterPlace, ClusterPlace];
  const binaries = await findBinaries(primary);
  await createCluster(primary, binaries);
  const password = await readPassword(primary);
  const ports = [await freePort(), await freePort()] as const;
  const addressAt = (port: number, name: string): string =>
    `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/${name}`;
  const [atPrimary, atStandby] = [addressAt(ports[0], "postgres"), addressAt(ports[1], "postgres")];
  await startServer({ place: primary, binaries, port: ports[0], settings: SETTINGS });
  await withClient(atPrimary, async (client) => {
    await copy(
      client,
      primary,
      standby,
      `host=127.0.0.1 port=${ports[0]} user=${SUPERUSER} password=${password}`,
    );
    await startServer({ place: standby, binaries, port: ports[1], settings: SETTINGS });
    const isStreaming = async () =>
      (await client.query("select from pg_stat_replication where state = 'streaming'")).rowCount === 1;
    await eventually("the standby follows", isStreaming);
    await client.query("alter system set synchronous_standby_names = '*'");
    await client.query("select pg_reload_conf()");
  });
  const proxy = await startTcpProxy(atPrimary);
  return {
    async create(name) {
      await withClient(atPrimary, (client) => client.query(`create database ${pg.escapeIdentifier(name)}`));
      // The standby confirms a commit before it shows it.
      await eventually("the standby has the database", () =>
        withClient(addressAt(ports[1], name), () => Promise.resolve(true)).catch(() => undefined),
      );
      const address = new URL(proxy.connectionString);
      address.pathname = `/${name}`;
      return address.href;
    },
    async failOver() {
      await stopHard(primary);
      await withClient(atStandby, (client) => client.query("select pg_promote()"));
      proxy.leadTo(ports[1]);
    },
    async close() {
      await proxy.close();
      await Promise.all(places.map(stopHard));
      await folder.remove();
    },
  };
};
