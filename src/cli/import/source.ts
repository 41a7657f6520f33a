import pg from "pg";
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

export interface SourceWrite extends SourceValue {
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

export interface SourceOptions {
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

  const ofKeys = `(checkpoint_ns, checkpoint_id) in (select * from unnest($2::text[], $3::text[]))`;
  const keyValues = (threadId: string, keys: readonly SourceKey[]): unknown[] => [
    threadId,
    keys.map((key) => key.checkpointNs),
    keys.map((key) => key.checkpointId),
  ];

  return {
    async assertTables() {
      const rows = await query<{ table: string }>(
        `select table_name as table from information_schema.columns
         where table_schema = $1 and (table_name, column_name) in
           (('checkpoints', 'parent_checkpoint_id'), ('checkpoint_blobs', 'blob'), ('checkpoint_writes', 'blob'))`,
        [schema],
      );
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
           pg_total_relation_size($1::regclass) + pg_total_relation_size($2::regclass)
             + pg_total_relation_size($3::regclass) as bytes`,
        TABLES.map(table),
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
      const rows = await query<{ thread_id: string }>(
        `select distinct thread_id from ${table("checkpoints")}
         where $1::text is null or thread_id > $1 order by thread_id limit $2`,
        [after ?? null, limit],
      );
      return rows.map((row) => row.thread_id);
    },

    async hasThread(threadId) {
      const rows = await query(`select 1 from ${table("checkpoints")} where thread_id = $1 limit 1`, [
        threadId,
      ]);
      return rows.length > 0;
    },

    keys: (threadId) =>
      query<SourceKey>(
        `select c.checkpoint_ns as "checkpointNs", c.checkpoint_id as "checkpointId", c.checkpoint ->> 'ts' as time,
           coalesce(w.writes, 0)::integer as writes
         from ${table("checkpoints")} c
         left join (
           select checkpoint_ns, checkpoint_id, count(*) as writes from ${table("checkpoint_writes")}
           where thread_id = $1 group by checkpoint_ns, checkpoint_id
         ) w using (checkpoint_ns, checkpoint_id)
         where c.thread_id = $1
         order by c.checkpoint_id collate "C", c.checkpoint_ns collate "C"`,
        [threadId],
      ),

    checkpoints: (threadId, keys) =>
      query<SourceCheckpoint>(
        `select checkpoint_ns as "checkpointNs", checkpoint_id as "checkpointId",
           parent_checkpoint_id as "parentId", checkpoint, metadata
         from ${table("checkpoints")} where thread_id = $1 and ${ofKeys}
         order by checkpoint_id collate "C", checkpoint_ns collate "C"`,
        keyValues(threadId, keys),
      ),

    blobs: (threadId, places) =>
      query<SourceBlob>(
        `select checkpoint_ns as "checkpointNs", channel, version, type, blob
         from ${table("checkpoint_blobs")} where thread_id = $1
           and (checkpoint_ns, channel, version) in (select * from unnest($2::text[], $3::text[], $4::text[]))`,
        [
          threadId,
          places.map((place) => place.checkpointNs),
          places.map((place) => place.channel),
          places.map((place) => place.version),
        ],
      ),

    writes: (threadId, keys) =>
      query<SourceWrite>(
        `select checkpoint_ns as "checkpointNs", checkpoint_id as "checkpointId", task_id as "taskId", channel,
           type, blob
         from ${table("checkpoint_writes")} where thread_id = $1 and ${ofKeys}
         order by checkpoint_id collate "C", checkpoint_ns collate "C", task_id collate "C", idx < 0, idx`,
        keyValues(threadId, keys),
      ),

    close: () => pool.end(),
  };
};
