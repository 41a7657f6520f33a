import pg from "pg";
import { statement } from "../../platform/database/statement.ts";
import { StartError } from "../../platform/domain/errors.ts";

/**
 * Reads the tables of `@langchain/langgraph-checkpoint-postgres`: `checkpoints` (without values), `checkpoint_blobs`
 * (one value per channel and version), `checkpoint_writes`.
 */

export interface SourceKey {
  checkpointNs: string;
  checkpointId: string;
  /** ISO 8601, as LangGraph wrote it. */
  time: string | null;
  writes: number;
}

export interface SourceCheckpoint {
  checkpointNs: string;
  checkpointId: string;
  parentId: string | null;
  checkpoint: Record<string, unknown> & { channel_versions?: Record<string, number | string> };
  metadata: unknown;
}

/** `type`: `json`, `bytes` or `empty`. */
export interface SourceValue {
  type: string | null;
  blob: Buffer | null;
}

export interface SourceBlob extends SourceValue, BlobPlace {}

export interface BlobPlace {
  checkpointNs: string;
  channel: string;
  version: string;
}

interface SourceWrite extends SourceValue {
  checkpointNs: string;
  checkpointId: string;
  taskId: string;
  channel: string;
}

export interface SourceTotals {
  threads: number;
  checkpoints: number;
  writes: number;
  bytes: number;
}

export interface Source {
  assertTables(): Promise<void>;
  countThreads(): Promise<number>;
  /** Reads all rows once. */
  totals(): Promise<SourceTotals>;
  /** Ascending. */
  threadIds(after: string | undefined, limit: number): Promise<string[]>;
  hasThread(threadId: string): Promise<boolean>;
  /** All namespaces, oldest first. */
  keys(threadId: string): Promise<SourceKey[]>;
  checkpoints(threadId: string, keys: readonly SourceKey[]): Promise<SourceCheckpoint[]>;
  blobs(threadId: string, places: readonly BlobPlace[]): Promise<SourceBlob[]>;
  /** By task, in the order of writing; special writes (error, interrupt, resume) last. */
  writes(threadId: string, keys: readonly SourceKey[]): Promise<SourceWrite[]>;
  close(): Promise<void>;
}

const TABLES = ["checkpoints", "checkpoint_blobs", "checkpoint_writes"] as const;
const CONNECT_TIMEOUT_MS = 10_000;

const FIND_TABLES = statement(
  { schema: "text" },
  (sql) => `select table_name as table from information_schema.columns
  where table_schema = ${sql.schema} and (table_name, column_name) in
    (('checkpoints', 'parent_checkpoint_id'), ('checkpoint_blobs', 'blob'), ('checkpoint_writes', 'blob'))`,
);

const OF_KEYS = { threadId: "text", namespaces: "text[]", ids: "text[]" } as const;
const ofKeys = (sql: Readonly<Record<keyof typeof OF_KEYS, string>>): string =>
  `thread_id = ${sql.threadId} and (checkpoint_ns, checkpoint_id) in (select * from unnest(${sql.namespaces}, ${sql.ids}))`;
const listsOf = (keys: readonly SourceKey[]) => ({
  namespaces: keys.map((key) => key.checkpointNs),
  ids: keys.map((key) => key.checkpointId),
});

const statementsOn = (table: (of: (typeof TABLES)[number]) => string) => ({
  idsAfter: statement(
    { after: "text", limit: "bigint" },
    (sql) => `select distinct thread_id from ${table("checkpoints")}
    where ${sql.after} is null or thread_id > ${sql.after} order by thread_id limit ${sql.limit}`,
  ),
  oneOf: statement(
    { threadId: "text" },
    (sql) => `select 1 from ${table("checkpoints")} where thread_id = ${sql.threadId} limit 1`,
  ),
  keysOf: statement(
    { threadId: "text" },
    (sql) => `select c.checkpoint_ns as "checkpointNs", c.checkpoint_id as "checkpointId",
      c.checkpoint ->> 'ts' as time, coalesce(w.writes, 0)::integer as writes
    from ${table("checkpoints")} c
    left join (
      select checkpoint_ns, checkpoint_id, count(*) as writes from ${table("checkpoint_writes")}
      where thread_id = ${sql.threadId} group by checkpoint_ns, checkpoint_id
    ) w using (checkpoint_ns, checkpoint_id)
    where c.thread_id = ${sql.threadId}
    order by c.checkpoint_id collate "C", c.checkpoint_ns collate "C"`,
  ),
  checkpointsOf: statement(
    OF_KEYS,
    (sql) => `select checkpoint_ns as "checkpointNs", checkpoint_id as "checkpointId",
      parent_checkpoint_id as "parentId", checkpoint, metadata
    from ${table("checkpoints")} where ${ofKeys(sql)}
    order by checkpoint_id collate "C", checkpoint_ns collate "C"`,
  ),
  blobsOf: statement(
    { threadId: "text", namespaces: "text[]", channels: "text[]", versions: "text[]" },
    (sql) => `select checkpoint_ns as "checkpointNs", channel, version, type, blob
    from ${table("checkpoint_blobs")} where thread_id = ${sql.threadId} and (checkpoint_ns, channel, version) in (
      select * from unnest(${sql.namespaces}, ${sql.channels}, ${sql.versions}))`,
  ),
  writesOf: statement(
    OF_KEYS,
    (sql) => `select checkpoint_ns as "checkpointNs", checkpoint_id as "checkpointId", task_id as
    "taskId", channel,
      type, blob
    from ${table("checkpoint_writes")} where ${ofKeys(sql)}
    order by checkpoint_id collate "C", checkpoint_ns collate "C", task_id collate "C", idx < 0, idx`,
  ),
});

interface SourceOptions {
  connectionString: string;
  schema: string;
  name: string;
  poolSize: number;
}

export const openSource = ({ connectionString, schema, name, poolSize }: SourceOptions): Source => {
  const pool = new pg.Pool({
    connectionString,
    max: poolSize,
    application_name: "threadloom import",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // The next statement reports a lost connection. Without a listener, the event would end the process.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  const table = (of: (typeof TABLES)[number]): string => `${pg.escapeIdentifier(schema)}.${of}`;
  const query = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
    (await pool.query(text, values)).rows as Row[];
  const source = { query };
  const { keysOf, checkpointsOf, blobsOf, writesOf, idsAfter, oneOf } = statementsOn(table);

  return {
    async assertTables() {
      const rows = await FIND_TABLES.query<{ table: string }>(source, { schema });
      const missing = TABLES.filter((wanted) => !rows.some((row) => row.table === wanted));
      if (missing.length === 0) return;
      throw new StartError(
        `The database ${name} has no tables of the official Postgres saver in the schema '${schema}' ` +
          `(missing: ${missing.join(", ")}). Name another schema with --schema, or another database with --from.`,
      );
    },

    async countThreads() {
      const [row] = await query<{ threads: string }>(
        `select count(distinct thread_id) as threads from ${table("checkpoints")}`,
      );
      return Number(row?.threads ?? 0);
    },

    async totals() {
      const [row] = await query<Record<keyof SourceTotals, string>>(
        `select (select count(distinct thread_id) from ${table("checkpoints")}) as threads,
           (select count(*) from ${table("checkpoints")}) as checkpoints,
           (select count(*) from ${table("checkpoint_writes")}) as writes,
           ${TABLES.map((of) => `pg_total_relation_size(${pg.escapeLiteral(table(of))})`).join(" + ")} as bytes`,
      );
      const number = (of: keyof SourceTotals): number => Number(row?.[of] ?? 0);
      return {
        threads: number("threads"),
        checkpoints: number("checkpoints"),
        writes: number("writes"),
        bytes: number("bytes"),
      };
    },

    async threadIds(after, limit) {
      const rows = await idsAfter.query<{ thread_id: string }>(source, { after, limit });
      return rows.map((row) => row.thread_id);
    },

    hasThread: async (threadId) => (await oneOf.query(source, { threadId })).length > 0,

    keys: (threadId) => keysOf.query<SourceKey>(source, { threadId }),

    checkpoints: (threadId, keys) =>
      checkpointsOf.query<SourceCheckpoint>(source, { threadId, ...listsOf(keys) }),

    blobs: (threadId, places) =>
      blobsOf.query<SourceBlob>(source, {
        threadId,
        namespaces: places.map((place) => place.checkpointNs),
        channels: places.map((place) => place.channel),
        versions: places.map((place) => place.version),
      }),

    writes: (threadId, keys) => writesOf.query<SourceWrite>(source, { threadId, ...listsOf(keys) }),

    close: () => pool.end(),
  };
};
