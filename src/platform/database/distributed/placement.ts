import type pg from "pg";
import { StartError } from "../../domain/errors.ts";
import { addressesOf } from "../addresses.js";
import { withProbe } from "../probe.ts";
import { statement } from "../statement.ts";
import { uuidHash } from "./uuid-hash.ts";

/** A slice of all threads: the shards with the same range of hashes, one of each distributed table, always on one node. */
export interface Part {
  /** The smallest hash of the part's threads. */
  from: number;
  /** Name of a table -> name of its shard, or of the copy of a common table that every node has. */
  tables: Readonly<Record<string, string>>;
  shardIds: readonly string[];
  /** `host:port`, as the cluster knows the node. */
  node: string;
}

export interface Placement {
  /** By `from`. */
  parts: readonly Part[];
  /** Tables that are distributed by thread. */
  ofThreads: readonly string[];
}

/** The tables that are distributed by thread, in an order in which each refers only to earlier ones. */
export const OF_THREADS = [
  "threads",
  "runs",
  "run_events",
  "run_traces",
  "model_usage",
  "checkpoints",
  "checkpoint_writes",
  "checkpoint_elements",
  "checkpoint_contents",
  "unused_objects",
  "webhook_deliveries",
  "push_notifications",
] as const;

/** Before the name of a table, the name of its copies. */
export const COPY_PREFIX = "copy_of_";

interface ShardRow {
  table_name: string;
  shardid: string;
  /** Null for a table that every node has a copy of. */
  shardminvalue: string | null;
  node: string;
}

const HAS_CITUS = "select to_regclass('pg_catalog.pg_dist_placement') is not null as found";

/** Whether this database is on a node beside the coordinator of a cluster. Its tables are shells without rows. */
export const isBesideCoordinator = async (client: pg.ClientBase): Promise<boolean> => {
  if ((await client.query<{ found: boolean }>(HAS_CITUS)).rows[0]?.found !== true) return false;
  const { rows } = await client.query<{ groupid: number }>("select groupid from pg_dist_local_group");
  return rows[0]?.groupid !== 0;
};

/** `repmodel` t: reference tables. See Citus' documentation of its metadata tables. */
const SHARDS = statement(
  { schema: "text" },
  (
    sql,
  ) => `select c.relname as table_name, s.shardid::text, s.shardminvalue, n.nodename || ':' || n.nodeport as node
  from pg_dist_partition p
  join pg_class c on c.oid = p.logicalrelid
  join pg_namespace s_ on s_.oid = c.relnamespace and s_.nspname = ${sql.schema}
  join pg_dist_shard s on s.logicalrelid = p.logicalrelid
  join pg_dist_placement l on l.shardid = s.shardid
  join pg_dist_node n on n.groupid = l.groupid and n.noderole = 'primary'
  where p.partmethod = 'h' or p.repmodel = 't'
  order by s.shardminvalue::integer nulls first, s.shardid`,
);

const IS_DISTRIBUTED = statement(
  { schema: "text" },
  (sql) => `select exists (select from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
    join pg_namespace n on n.oid = c.relnamespace where n.nspname = ${sql.schema} and p.partmethod = 'h') as found`,
);

/** Whether at least one table is. */
export const isDistributed = async (client: pg.ClientBase, schema: string): Promise<boolean> => {
  if ((await client.query<{ found: boolean }>(HAS_CITUS)).rows[0]?.found !== true) return false;
  const { rows } = await client.query<{ found: boolean }>(IS_DISTRIBUTED.compile({ schema }));
  return rows[0]!.found;
};

/** Undefined: the tables are not distributed. Throws `StartError` if some are not. */
export const readPlacement = async (client: pg.Client, schema: string): Promise<Placement | undefined> => {
  if ((await client.query<{ found: boolean }>(HAS_CITUS)).rows[0]?.found !== true) return undefined;
  const { rows } = await client.query<ShardRow>(SHARDS.compile({ schema }));
  const common = rows.filter((row) => row.shardminvalue === null);
  const shards = rows.filter((row) => row.shardminvalue !== null);
  if (shards.length === 0) return undefined;
  const missing = OF_THREADS.filter((table) => !shards.some((row) => row.table_name === table));
  if (missing.length > 0)
    throw new StartError(
      `The table ${missing[0]!} is not distributed yet. Stop all servers, and run 'threadloom distribute' again.`,
    );
  const shardOf = ({ table_name: name, shardid }: ShardRow) =>
    [name.startsWith(COPY_PREFIX) ? name.slice(COPY_PREFIX.length) : name, `${name}_${shardid}`] as const;
  const parts = new Map<number, ShardRow[]>();
  for (const row of shards) {
    const from = Number(row.shardminvalue);
    parts.set(from, [...(parts.get(from) ?? []), row]);
  }
  return {
    ofThreads: [...new Set(shards.map((row) => row.table_name))],
    parts: [...parts].map(([from, ofPart]) => ({
      from,
      tables: Object.fromEntries([...common, ...ofPart].map(shardOf)),
      shardIds: ofPart.map(({ shardid }) => shardid),
      node: ofPart[0]!.node,
    })),
  };
};

/** As `readPlacement`. Also throws errors of `pg`. */
export const findPlacement = (connectionString: string, schema: string): Promise<Placement | undefined> =>
  withProbe(connectionString, (client) => readPlacement(client, schema));

/** Index into `placement.parts`. */
export const partOf = ({ parts }: Placement, threadId: string): number => {
  const hash = uuidHash(threadId);
  let low = 0;
  for (let high = parts.length; high - low > 1;) {
    const middle = (low + high) >> 1;
    if (parts[middle]!.from <= hash) low = middle;
    else high = middle;
  }
  return low;
};

/** The address of a node, with the user and the settings of `connectionString`. */
export const nodeAddress = (connectionString: string, node: string): string => {
  const url = new URL(addressesOf(connectionString)[0]!);
  const at = node.lastIndexOf(":");
  url.hostname = node.slice(0, at);
  url.port = node.slice(at + 1);
  const given = url.searchParams.get("options");
  url.searchParams.set(
    "options",
    `${given === null ? "" : `${given} `}-c citus.enable_manual_changes_to_shards=on`,
  );
  return url.href;
};

/** How many parts each node has. */
export const partsByNode = async (
  client: pg.Client,
  schema: string,
): Promise<ReadonlyMap<string, number>> => {
  const found = new Map<string, number>();
  for (const { node } of (await readPlacement(client, schema))?.parts ?? [])
    found.set(node, (found.get(node) ?? 0) + 1);
  return found;
};
