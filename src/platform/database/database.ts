import pg from "pg";
import { ObjectStoreError, sqlState } from "../domain/errors.ts";
import { Encryption } from "../encryption/encryption.ts";
import { parseStoredJson } from "../encryption/json.ts";
import { openCipher, type EncryptionSetup } from "../encryption/cipher.ts";
import type { Logger } from "../lib/logger.ts";
import type { ObjectStore } from "./object-store.ts";
import { boundAnswers, isUnanswered, type BoundedStatement } from "./answer-bound.ts";
import { DEFAULT_SCHEMA, inSchema } from "./schema.ts";
import { BOUNDED_TRANSACTION, createBoundedReads, type BoundedReads } from "./bounded-reads.ts";
import { createGrouping, type Grouping } from "./grouping.ts";
import type { Queryable } from "./queryable.ts";
import { createLosses, createOutages } from "./outages.ts";
import { isPassing, mayHaveBeenCommitted } from "./passing-faults.ts";

export interface DatabaseOptions {
  connectionString: string;
  schema?: string;
  poolSize: number;
  applicationName: string;
  /** False behind a pooler without prepared statements (PgBouncer < 1.21). */
  preparedStatements: boolean;
  timeoutMs?: number;
  encryption?: EncryptionSetup;
  /** The caller closes it. */
  objects?: ObjectStore | undefined;
  logger: Logger;
}

export type { Encryption, Queryable };

/** `rowCount`: written rows, for statements that return none. */
export interface Answer<Row> {
  rows: Row[];
  rowCount: number | null;
}

/** Kysely (`queriesOver` in queries.ts) serves plain reads and writes; `statement` serves hot statements and CTEs. */
export interface Records extends Queryable {
  readonly schema: string;
  execute<Row>(text: string, values: unknown[]): Promise<Answer<Row>>;
}

export interface Database extends Records, BoundedReads {
  readonly pool: pg.Pool;
  readonly connectionString: string;
  /** `answerMs`: time limit for the answer, after which the connection is closed. */
  query<Row>(text: string, values?: unknown[], options?: { answerMs?: number }): Promise<Row[]>;
  /** Callers of the same time share a statement; undefined: no row. */
  grouped: Grouping;
  /** Rolls back if `work` throws; `opening` replaces `begin`. Never call user code in `work`. */
  transaction<T>(work: (transaction: Records) => Promise<T>, opening?: string): Promise<T>;
  /** True: this database threw the error, and the fault may pass. Graphs may throw errors of their own databases. */
  isLoss(error: unknown): boolean;
  /** A lost connection may mean a crash of the database. Returns the unsubscribe function. */
  onConnectionLost(listener: () => void): () => void;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** For a dropped connection or a vanished machine. Poolers refuse `statement_timeout` as a connection setting. */
const ANSWER_TIMEOUT_MS = 15_000;
/** Transactions delete and copy threads. Their first statement has shown that the connection works. */
const LONG_ANSWER_TIMEOUT_MS = 60_000;
/** Extra time for a large statement on a slow line. */
const BYTES_PER_MS = 1_000;
const LARGE_BYTES = 1_000_000;
const READ_ONLY = "25006";

const JSON_TYPES: ReadonlySet<number> = new Set([pg.types.builtins.JSON, pg.types.builtins.JSONB]);

/** The default of the system is two hours. */
const KEEP_ALIVE_MS = 10_000;

/** A new connection costs this process 2 ms, and plans every statement again. */
const IDLE_TIMEOUT_MS = 300_000;

/**
 * Plans for each execution cost a run half as much CPU again, and compiling one takes 0.2 s. A plan of a time when a
 * table was small would scan the whole table.
 */
const PLAN_ONCE = "set plan_cache_mode = force_generic_plan; set jit = off; set enable_seqscan = off";

const bytesOf = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  if (Buffer.isBuffer(value)) return value.length;
  let bytes = 0;
  if (Array.isArray(value)) for (const item of value) bytes += bytesOf(item);
  return bytes;
};

/** Encrypted values stay, because decryption needs the row's ids. */
const TYPES_WITH_ENCRYPTED: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: "text" | "binary") =>
    JSON_TYPES.has(id) && format !== "binary"
      ? parseStoredJson
      : (pg.types.getTypeParser(id, format as "text") as unknown)) as pg.CustomTypesConfig["getTypeParser"],
};

/**
 * The code bounds the number of statements: lists are arrays, never `in ($1, $2, …)`. The cap guards against a composed
 * statement with endless variants.
 */
const STATEMENTS_AT_MOST = 500;

/**
 * Prepares each statement once per connection: 1.76x the throughput on a bare connection. Kysely sends unnamed
 * statements; there it is 1.3 to 1.4x.
 */
const nameStatements = (client: pg.PoolClient): void => {
  const names = new Map<string, string>();
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  const named = (text: unknown, values: unknown, ...rest: unknown[]): unknown => {
    if (typeof text !== "string" || !Array.isArray(values)) return query(text, values, ...rest);
    let name = names.get(text);
    if (name === undefined) {
      if (names.size >= STATEMENTS_AT_MOST) return query(text, values, ...rest);
      name = `s${names.size}`;
      names.set(text, name);
    }
    return query({ name, text, values }, ...rest);
  };
  client.query = named as typeof client.query;
};

export const openDatabase = (options: DatabaseOptions): Database => {
  const { connectionString, poolSize, applicationName, preparedStatements, timeoutMs, logger } = options;
  const { schema = DEFAULT_SCHEMA, objects } = options;
  const cipher = options.encryption && openCipher(options.encryption);
  const qualified = inSchema(schema);
  const encryption = new Encryption(cipher);
  const answerTimeoutMs = timeoutMs ?? ANSWER_TIMEOUT_MS;
  const longAnswerTimeoutMs = timeoutMs ?? LONG_ANSWER_TIMEOUT_MS;
  cipher?.onDamaged((error) =>
    logger.warn(
      { reason: error.message },
      "a text that looks encrypted can't be opened; it is shown as it is stored",
    ),
  );
  const settings = {
    application_name: applicationName,
    connectionTimeoutMillis: timeoutMs ?? CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    ...(cipher && { types: TYPES_WITH_ENCRYPTED }),
  };
  const planOnce = { text: PLAN_ONCE, query_timeout: settings.connectionTimeoutMillis };
  const onConnect = (client: pg.ClientBase) => client.query(planOnce);
  const pool = new pg.Pool({ ...settings, onConnect, connectionString, max: poolSize });
  const connectionLosses = createLosses(logger);
  connectionLosses.watch(pool);
  pool.on("connect", (client) => {
    if (preparedStatements) nameStatements(client);
    boundAnswers(client, answerTimeoutMs);
  });
  const outages = createOutages(logger);
  const losses = new WeakSet<Error>();
  /** The other connections probably have the same fault, and each would cost a run the same wait. */
  const renewIdle = (): void => {
    for (let left = pool.idleCount; left > 0 && !pool.ending; left -= 1)
      pool.connect().then(
        (client) => client.release(true),
        () => undefined,
      );
  };
  const noting = async <Result>(work: Promise<Result>): Promise<Result> => {
    try {
      const result = await work;
      outages.worked();
      return result;
    } catch (error) {
      if (error instanceof Error && isPassing(error)) losses.add(error);
      if (isUnanswered(error)) renewIdle();
      outages.failed(error);
      throw error;
    }
  };
  const ask = (
    connection: pg.Pool | pg.PoolClient,
    text: string,
    values: unknown[],
    usualMs: number,
  ): Promise<pg.QueryResult> => {
    const bytes = bytesOf(values);
    const answerMs = bytes > LARGE_BYTES ? usualMs + bytes / BYTES_PER_MS : usualMs;
    if (answerMs === answerTimeoutMs) return noting(connection.query(qualified(text), values));
    const bounded: BoundedStatement = { text: qualified(text), values, answerMs };
    return noting(connection.query(bounded));
  };
  const recordsOver = (
    connection: pg.Pool | pg.PoolClient,
    usualMs: number,
  ): Pick<Database, keyof Records> => ({
    schema,
    encryption,
    objects,
    async execute<Row>(text: string, values: unknown[]) {
      const { rows, rowCount } = await ask(connection, text, values, usualMs);
      return { rows: rows as Row[], rowCount };
    },
    async query<Row>(text: string, values: unknown[] = [], { answerMs }: { answerMs?: number } = {}) {
      return (await ask(connection, text, values, answerMs ?? usualMs)).rows as Row[];
    },
  });

  const database: Omit<Database, keyof BoundedReads | "grouped"> = {
    ...recordsOver(pool, answerTimeoutMs),
    pool,
    connectionString,
    isLoss: (error) => error instanceof ObjectStoreError || (error instanceof Error && losses.has(error)),
    onConnectionLost: connectionLosses.listen,
    async transaction(work, opening = "begin") {
      const client = await noting(pool.connect());
      let broken: Error | undefined;
      try {
        await noting(client.query(opening));
        const result = await work(recordsOver(client, longAnswerTimeoutMs));
        await noting(client.query("commit"));
        return result;
      } catch (error) {
        // Only a new connection finds the new primary.
        if (sqlState(error) === READ_ONLY) broken = error as Error;
        // The connection will not answer other statements either.
        if (mayHaveBeenCommitted(error)) broken = error as Error;
        else
          await client.query("rollback").catch((rollbackError: unknown) => {
            broken = rollbackError as Error;
          });
        throw error;
      } finally {
        client.release(broken);
      }
    },
    async close() {
      if (!pool.ending) await pool.end();
    },
  };
  const boundedReads = createBoundedReads((work) =>
    database.transaction(({ query }) => work(query), BOUNDED_TRANSACTION),
  );
  return { ...database, ...boundedReads, grouped: createGrouping(database, logger) };
};
