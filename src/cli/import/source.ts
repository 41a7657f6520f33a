import pg from "pg";
import { statement } from "../../platform/database/statement.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { databaseName } from "../banner.ts";
import { explainUnusable } from "../own-database.ts";

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

const ofThread = (sql: { threadId: string }): string =>
  `where ${sql.threadId} is null or thread_id = ${sql.threadId}`;

const statementsOn = (table: (of: (typeof TABLES)[number]) => string) => ({
  idsAfter: statement(
    { after: "text", limit: "bigint" },
    (sql) => `select distinct thread_id from ${table("checkpoints")}
    where ${sql.after} is null or thread_id > ${sql.after} order by thread_id limit ${sql.limit}`,
  ),
  totalsOf: statement(
    { threadId: "text" },
    (
      sql,
    ) => `select (select count(distinct thread_id) from ${table("checkpoints")} ${ofThread(sql)}) as threads,
      (select count(*) from ${table("checkpoints")} ${ofThread(sql)}) as checkpoints,
      (select count(*) from ${table("checkpoint_writes")} ${ofThread(sql)}) as writes`,
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
  poolSize: number;
}

export class Source {
  readonly #pool: pg.Pool;
  readonly #statements: ReturnType<typeof statementsOn>;

  constructor(private readonly options: SourceOptions) {
    const { connectionString, poolSize, schema } = options;
    this.#pool = new pg.Pool({
      connectionString,
      max: poolSize,
      application_name: "threadloom import",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    });
    // The next statement reports a lost connection. Without a listener, the event would end the process.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => client.on("error", () => undefined));
    this.#statements = statementsOn((of) => `${pg.escapeIdentifier(schema)}.${of}`);
  }

  async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
    try {
      return (await this.#pool.query(text, values)).rows as Row[];
    } catch (error) {
      throw explainUnusable(error, this.options.connectionString);
    }
  }

  async assertTables(): Promise<void> {
    const { connectionString, schema } = this.options;
    const rows = await FIND_TABLES.query<{ table: string }>(this, { schema });
    const missing = TABLES.filter((wanted) => !rows.some((row) => row.table === wanted));
    if (missing.length === 0) return;
    throw new StartError(
      `The database ${databaseName(connectionString)} has no tables of the official Postgres saver in the schema '${schema}' ` +
        `(missing: ${missing.join(", ")}). Name another schema with --schema, or another database with --from.`,
    );
  }

  /** Reads all rows once. */
  async totals(threadId: string | undefined): Promise<SourceTotals> {
    const [row] = await this.#statements.totalsOf.query<Record<keyof SourceTotals, string>>(this, {
      threadId,
    });
    const { threads, checkpoints, writes } = row!;
    return { threads: Number(threads), checkpoints: Number(checkpoints), writes: Number(writes) };
  }

  /** Ascending. */
  async threadIds(after: string | undefined, limit: number): Promise<string[]> {
    const rows = await this.#statements.idsAfter.query<{ thread_id: string }>(this, { after, limit });
    return rows.map((row) => row.thread_id);
  }

  /** All namespaces, oldest first. */
  keys(threadId: string): Promise<SourceKey[]> {
    return this.#statements.keysOf.query<SourceKey>(this, { threadId });
  }

  checkpoints(threadId: string, keys: readonly SourceKey[]): Promise<SourceCheckpoint[]> {
    return this.#statements.checkpointsOf.query<SourceCheckpoint>(this, { threadId, ...listsOf(keys) });
  }

  blobs(threadId: string, places: readonly BlobPlace[]): Promise<SourceBlob[]> {
    return this.#statements.blobsOf.query<SourceBlob>(this, {
      threadId,
      namespaces: places.map((place) => place.checkpointNs),
      channels: places.map((place) => place.channel),
      versions: places.map((place) => place.version),
    });
  }

  /** By task, in the order of writing; special writes (error, interrupt, resume) last. */
  writes(threadId: string, keys: readonly SourceKey[]): Promise<SourceWrite[]> {
    return this.#statements.writesOf.query<SourceWrite>(this, { threadId, ...listsOf(keys) });
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}
