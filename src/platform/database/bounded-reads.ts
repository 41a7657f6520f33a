import { invalid, unavailable } from "../domain/errors.ts";
import { createGate } from "../lib/gate.ts";
import { isCancelled } from "./passing-faults.ts";

/**
 * Reads whose cost is the caller's choice: searches and counts. Each has an end that PostgreSQL itself keeps, and only
 * a few run at a time, so that runs find connections and processors whatever is being looked for.
 */
export interface BoundedReads {
  /**
   * Rejects with `invalid` if it takes too long, `unavailable` if too many are in front of it, and with the signal's
   * reason if that aborts before it has begun. A statement that has begun ends by itself, in two seconds at most.
   */
  boundedRead<Row>(text: string, values?: unknown[], signal?: AbortSignal): Promise<Row[]>;
  /** Several statements that follow from each other, in one transaction: each has that end. Rejects like `boundedRead`. */
  boundedReads<T>(work: (read: BoundedRead) => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/** One statement of `boundedReads`. */
export type BoundedRead = <Row>(text: string, values?: unknown[]) => Promise<Row[]>;

/** A search of 100,000 threads whose metadata all match takes 0.1 s, the count included. */
export const BOUNDED_READ_MS = 2_000;
/**
 * Of the 20 connections that a process has by default. Five thousand searches by index fit through these in a second; four
 * at a time took the processors of a small database from the runs.
 */
const AT_ONCE = 2;
const PATIENCE_MS = 5_000;

/** A page of records that clients wrote as they like ends with the one with which it has so many bytes. */
export const PAGE_BYTES_AT_MOST = 16 * 1024 * 1024;

/** What `roomyPage` adds to each row. */
export interface PageColumns {
  page_rows: string;
  weight_before: string;
}

export interface PageWeight {
  /** The `jsonb` columns of `page` that are sent and may be large. */
  columns: readonly [string?, string?, string?, string?];
  /** SQL for the bytes of what else is sent of a row of `page`, found without reading anything long. */
  octets?: string;
  /** Bytes that a page has room for; `PAGE_BYTES_AT_MOST` if undefined. */
  bytesAtMost?: number;
  /** SQL for the columns that are sent, made of those of `page`; all of them as they are if undefined. */
  sent?: string;
}

/**
 * The same statement, its rows in the same order, without those that a page has no room for. What they weigh is found
 * in the database: they are not sent here. `page_rows` is how many there were.
 *
 * The statement must give its long columns as they are stored: PostgreSQL then carries references to them. They are
 * read and written as text only until the page is full (`weight_within`), and once more to be sent:
 * 200 records of 6 MB, which 20,000 numbers make, took longer than any search may, and now take as long as three.
 */
export const roomyPage = (
  statement: string,
  { columns, octets = "0", bytesAtMost = PAGE_BYTES_AT_MOST, sent = "page.*" }: PageWeight,
): string => {
  const weighed = [0, 1, 2, 3].map((index) => columns[index] ?? "null");
  return `
  select ${sent}, page_rows, weight_before from (
    select page.*, count(*) over () as page_rows,
      threadloom.weight_within(${bytesAtMost}, ${octets}, ${weighed.join(", ")})
        over (rows between unbounded preceding and 1 preceding) as weight_before
    from (${statement}) page
  ) page where weight_before < ${bytesAtMost}`;
};

/**
 * PostgreSQL plans each statement for its values, and may scan tables and bitmaps, which other statements may not (session-settings.ts).
 * The settings are local to a transaction, since a pooler would refuse them for a connection or leave them to its next user.
 */
const OPENING = [
  "begin read only",
  `set local statement_timeout = ${BOUNDED_READ_MS}`,
  "set local plan_cache_mode = force_custom_plan",
  "set local jit = off",
  "set local enable_seqscan = on",
  "set local enable_bitmapscan = on",
].join("; ");

/** A transaction of `Database`. */
interface Transaction {
  query<Row>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** `transaction` opens one with the given statements. */
export const createBoundedReads = (
  transaction: <T>(work: (transaction: Transaction) => Promise<T>, opening: string) => Promise<T>,
): BoundedReads => {
  const gate = createGate({
    places: AT_ONCE,
    waitMs: PATIENCE_MS,
    full: () => unavailable("Too many searches are being made at the moment."),
  });
  const boundedReads: BoundedReads["boundedReads"] = async (work, signal) => {
    const leave = await gate.enter(signal);
    try {
      return await transaction((queryable) => work((text, values) => queryable.query(text, values)), OPENING);
    } catch (error) {
      if (!isCancelled(error)) throw error;
      throw invalid(`This takes longer than ${BOUNDED_READ_MS / 1_000} seconds; narrow the filter.`);
    } finally {
      leave();
    }
  };
  return {
    boundedReads,
    boundedRead: (text, values = [], signal) => boundedReads((read) => read(text, values), signal),
  };
};
