import { invalid, unavailable } from "../domain/errors.ts";
import { isCancelled } from "./passing-faults.ts";

/** Admits a limited number of callers at a time; the others wait in order. */
const createGate = (places: number, waitMs: number, full: () => Error) => {
  let free = places;
  const waiting = new Set<() => void>();

  const leaveOnce = (): (() => void) => {
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      const [next] = waiting;
      if (next === undefined) free += 1;
      else next();
    };
  };

  return {
    /**
     * Resolves with a function that frees the place. Rejects with `full()` after `waitMs`, or with the signal's reason.
     */
    enter: (signal?: AbortSignal): Promise<() => void> =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason as Error);
        if (free > 0) {
          free -= 1;
          return resolve(leaveOnce());
        }
        const stop = (): void => {
          waiting.delete(letIn);
          clearTimeout(timer);
          signal?.removeEventListener("abort", giveUp);
        };
        const letIn = (): void => {
          stop();
          resolve(leaveOnce());
        };
        const giveUp = (): void => {
          stop();
          reject(signal?.reason as Error);
        };
        const timer = setTimeout(() => {
          stop();
          reject(full());
        }, waitMs);
        signal?.addEventListener("abort", giveUp);
        waiting.add(letIn);
      }),
  };
};

/**
 * Callers choose the cost of searches and counts. A time limit and a bound on parallel reads leave connections and
 * processors for runs.
 */
export interface BoundedReads {
  /**
   * Rejects with `invalid` after the time limit, `unavailable` if too many reads wait, and the signal's reason on an
   * abort before the start.
   */
  boundedRead<Row>(text: string, values?: unknown[], signal?: AbortSignal): Promise<Row[]>;
  /** Each statement has the time limit. */
  boundedReads<T>(work: BoundedWork<T>, signal?: AbortSignal): Promise<T>;
}

type BoundedWork<T> = (read: BoundedRead) => Promise<T>;

export type BoundedRead = <Row>(text: string, values?: unknown[]) => Promise<Row[]>;

/** A search of 100,000 threads whose metadata all match takes 0.1 s with its count. */
export const BOUNDED_READ_MS = 2_000;
/** Two serve 5,000 indexed searches a second. Four slowed the runs on a small database. */
const BOUNDED_READS_AT_ONCE = 2;
const PATIENCE_MS = 5_000;

/** Clients choose the size of records. */
export const PAGE_BYTES_AT_MOST = 16 * 1024 * 1024;

export interface PageColumns {
  page_rows: string;
  weight_before: string;
}

export interface PageWeight {
  /** Columns of `page` that may be large: `metadata`, and at most three of `json`. */
  columns: readonly string[];
  /** SQL for the bytes of the other columns. Must not read long values. */
  octets?: string;
  /** Default: `PAGE_BYTES_AT_MOST`. */
  bytesAtMost?: number;
  /** SQL; default: all columns of `page`. */
  sent?: string;
}

/**
 * Cuts a page by bytes; `page_rows` counts the rows before the cut. The statement must return long columns as stored,
 * because PostgreSQL then reads values only until the page is full.
 */
export const roomyPage = (
  statement: string,
  { columns, octets = "0", bytesAtMost = PAGE_BYTES_AT_MOST, sent = "page.*" }: PageWeight,
): string => {
  const texts = columns.filter((column) => column !== "metadata");
  const metadata = columns.includes("metadata") ? "metadata" : "null";
  const weighed = [metadata, ...[0, 1, 2].map((index) => texts[index] ?? "null")];
  return `
  select ${sent}, page_rows, weight_before from (
    select page.*, count(*) over () as page_rows,
      threadloom.weight_within(${bytesAtMost}, ${octets}, ${weighed.join(", ")})
        over (rows between unbounded preceding and 1 preceding) as weight_before
    from (${statement}) page
  ) page where weight_before < ${bytesAtMost}`;
};

/** Any plan for the values of each search. Behind a pooler, the connection may lack the settings of `database.ts`. */
export const BOUNDED_TRANSACTION = [
  "begin read only",
  `set local statement_timeout = ${BOUNDED_READ_MS}`,
  "set local plan_cache_mode = force_custom_plan",
  "set local jit = off",
  "set local enable_seqscan = on",
].join("; ");

/** @param run calls `work` with reads that have the time limit and any plan, and write nothing */
export const createBoundedReads = (run: <T>(work: BoundedWork<T>) => Promise<T>): BoundedReads => {
  const gate = createGate(BOUNDED_READS_AT_ONCE, PATIENCE_MS, () =>
    unavailable("Too many searches are being made at the moment."),
  );
  const boundedReads: BoundedReads["boundedReads"] = async (work, signal) => {
    const leave = await gate.enter(signal);
    try {
      return await run(work);
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
