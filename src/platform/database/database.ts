import pg from "pg";
import { sqlState } from "../domain/errors.ts";
import type { Cipher } from "../encryption/cipher.ts";
import { parseStoredJson } from "../encryption/json.ts";
import type { Logger } from "../lib/logger.ts";
import { boundAnswers, isUnanswered, type BoundedStatement } from "./answer-bound.ts";
import { DEFAULT_SCHEMA, inSchema } from "./schema.ts";
import { createBoundedReads, type BoundedReads } from "./bounded-reads.ts";
import { createOutages } from "./outages.ts";
import { isPassing, mayHaveBeenCommitted } from "./passing-faults.ts";
import { nameStatements } from "./statement-names.ts";

export interface DatabaseOptions {
  connectionString: string;
  /** Where the tables stand; `threadloom` if left out. */
  schema?: string;
  /** Connections that this process may hold at most. */
  poolSize: number;
  /** Seen in pg_stat_activity. */
  applicationName: string;
  /** False behind a pooler in transaction mode that doesn't know prepared statements (PgBouncer < 1.21). */
  preparedStatements: boolean;
  /** How long a connection and an answer are waited for; the usual times if left out. */
  timeoutMs?: number;
  /** Seals what is stored; nothing is sealed if left out. */
  cipher?: Cipher | undefined;
  logger: Logger;
}

/** Runs one statement with positional parameters; what a pool, a client and a transaction have in common. */
export interface Queryable {
  /**
   * Encrypts what users gave, if there is a key. Writers and readers of rows call it (platform/encryption/columns.ts); encrypted `json` and
   * `jsonb` are read as `EncryptedJson`.
   */
  readonly cipher?: Cipher | undefined;
  query<Row>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** What a statement has answered; `rowCount`: those that it wrote, where it returns none. */
export interface Answer<Row> {
  rows: Row[];
  rowCount: number | null;
}

/**
 * A pool or a transaction, for repositories of records: Kysely for plain reads and writes (`queriesOver` in queries.ts),
 * `query` for hot statements and those with CTEs, whose whole text stands in the repository. Both go over the same
 * connection, and both are prepared once for each connection (statement-names.ts).
 */
export interface Records extends Queryable {
  readonly schema: string;
  execute<Row>(text: string, values: unknown[]): Promise<Answer<Row>>;
}

/** The process's way to Postgres. */
export interface Database extends Records, BoundedReads {
  readonly pool: pg.Pool;
  readonly connectionString: string;
  /**
   * `answerMs`: for how long the answer is waited for, instead of the usual time; the connection that owes it is given up.
   */
  query<Row>(text: string, values?: unknown[], options?: { answerMs?: number }): Promise<Row[]>;
  /**
   * Runs `work` in a transaction on one connection; rolls back if it throws. Never while user code runs. `opening`:
   * what it begins with, if not a plain `begin`.
   */
  transaction<T>(work: (transaction: Records) => Promise<T>, opening?: string): Promise<T>;
  /** Whether this very error came from here and passes (passing-faults.ts). Graphs may have databases of their own. */
  isLoss(error: unknown): boolean;
  /** Calls back whenever a connection was lost: the database may have crashed. Returns the end of the subscription. */
  onConnectionLost(listener: () => void): () => void;
  close(): Promise<void>;
}

/** Connections that are lost at once are lost for one reason. */
const LOSS_LOGGED_EVERY_MS = 10_000;
/** How long a request may wait for a connection before it is refused as `unavailable`. */
const CONNECT_TIMEOUT_MS = 10_000;
/**
 * A connection that is dead and does not say so (a firewall that forgot it, a machine that vanished) is given up after this
 * time without an answer. Statements of runs take milliseconds. Set here and not as `statement_timeout`, which poolers
 * refuse at the start of a connection.
 */
const ANSWER_TIMEOUT_MS = 15_000;
/** Within a transaction, whose first statement has shown that the connection lives: threads are deleted and copied there. */
const LONG_ANSWER_TIMEOUT_MS = 60_000;
/** What a statement carries may take as long again on a slow line. */
const BYTES_PER_MS = 1_000;
const LARGE_BYTES = 1_000_000;
/** SQLSTATE: a statement that writes was sent to a standby. */
const READ_ONLY = "25006";

/** Their numbers in PostgreSQL: `json` and `jsonb`. */
const JSON_TYPES: ReadonlySet<number> = new Set([pg.types.builtins.JSON, pg.types.builtins.JSONB]);

/** An idle connection is probed after this time; the system's own setting is two hours. */
const KEEP_ALIVE_MS = 10_000;

/** A new connection costs 2 ms of this process and plans every statement anew: keep them between bursts. */
const IDLE_TIMEOUT_MS = 300_000;

const bytesOf = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  if (Buffer.isBuffer(value)) return value.length;
  let bytes = 0;
  if (Array.isArray(value)) for (const item of value) bytes += bytesOf(item);
  return bytes;
};

/** As usual, but for JSON that holds sealed values: only who knows the row can open them. */
const TYPES_WITH_ENCRYPTED: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: "text" | "binary") =>
    JSON_TYPES.has(id) && format !== "binary"
      ? parseStoredJson
      : (pg.types.getTypeParser(id, format as "text") as unknown)) as pg.CustomTypesConfig["getTypeParser"],
};

export const openDatabase = (options: DatabaseOptions): Database => {
  const { connectionString, poolSize, applicationName, preparedStatements, timeoutMs, logger } = options;
  const { schema = DEFAULT_SCHEMA, cipher } = options;
  const qualified = inSchema(schema);
  const answerTimeoutMs = timeoutMs ?? ANSWER_TIMEOUT_MS;
  const longAnswerTimeoutMs = timeoutMs ?? LONG_ANSWER_TIMEOUT_MS;
  // Once: a caller may have written a thousand texts that look sealed.
  cipher?.onDamaged((error) =>
    logger.warn(
      { reason: error.message },
      "a text that looks encrypted can't be opened; it is shown as it is stored",
    ),
  );
  const pool = new pg.Pool({
    connectionString,
    max: poolSize,
    application_name: applicationName,
    connectionTimeoutMillis: timeoutMs ?? CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    ...(cipher && { types: TYPES_WITH_ENCRYPTED }),
  });
  // Without these listeners a terminated backend ends the process: an idle client emits on the pool, a client
  // in a transaction on itself.
  const lossListeners = new Set<() => void>();
  let lossLoggedAt = -Infinity;
  const lost = (error: Error): void => {
    // A server that stops takes all of them with it: one line says so.
    const now = performance.now();
    const level = now - lossLoggedAt < LOSS_LOGGED_EVERY_MS ? "debug" : "warn";
    if (level === "warn") lossLoggedAt = now;
    // Not the error itself: `pg` hangs the whole client on it, with every statement it ever prepared.
    logger[level]({ reason: error.message, code: sqlState(error) }, "a database connection was lost");
    for (const listener of lossListeners) listener();
  };
  const received = new WeakSet<Error>();
  pool.on("error", (error) => {
    if (!received.has(error)) lost(error);
  });
  pool.on("connect", (client) => {
    client.on("error", (error) => {
      received.add(error);
      lost(error);
    });
    if (preparedStatements) nameStatements(client);
    boundAnswers(client, answerTimeoutMs);
  });
  const outages = createOutages(logger);
  const losses = new WeakSet<Error>();
  /** What swallowed one connection has swallowed others: each would cost a run the same wait. */
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
  const recordsOver = (connection: pg.Pool | pg.PoolClient, usualMs: number): Omit<Records, "query"> => ({
    schema,
    cipher,
    async execute<Row>(text: string, values: unknown[]) {
      const { rows, rowCount } = await ask(connection, text, values, usualMs);
      return { rows: rows as Row[], rowCount };
    },
  });

  const database: Omit<Database, keyof BoundedReads> = {
    ...recordsOver(pool, answerTimeoutMs),
    pool,
    connectionString,
    async query<Row>(text: string, values: unknown[] = [], { answerMs }: { answerMs?: number } = {}) {
      return (await ask(pool, text, values, answerMs ?? answerTimeoutMs)).rows as Row[];
    },
    isLoss: (error) => error instanceof Error && losses.has(error),
    onConnectionLost(listener) {
      lossListeners.add(listener);
      return () => lossListeners.delete(listener);
    },
    async transaction(work, opening = "begin") {
      const client = await noting(pool.connect());
      let broken: Error | undefined;
      try {
        await noting(client.query(opening));
        const result = await work({
          ...recordsOver(client, longAnswerTimeoutMs),
          async query<Row>(text: string, values: unknown[] = []) {
            return (await ask(client, text, values, longAnswerTimeoutMs)).rows as Row[];
          },
        });
        await noting(client.query("commit"));
        return result;
      } catch (error) {
        // The server behind the connection is no longer the primary; only a new connection finds the one that is.
        if (sqlState(error) === READ_ONLY) broken = error as Error;
        // Without an answer to one statement there is none to the next: the connection is gone, not given back.
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
  return { ...database, ...createBoundedReads((work, opening) => database.transaction(work, opening)) };
};
