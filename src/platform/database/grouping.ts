import type { Logger } from "../lib/logger.ts";
import { isContention, isPassing } from "./passing-faults.ts";
import type { Queryable } from "./queryable.ts";

/** A statement about a list of threads (`listStatement`). */
export interface GroupedStatement<Source, Row extends { thread_id: string }> {
  /** A list names a thread once, because a statement cannot write a row twice. */
  threadOf(source: Source): string;
  /** Sent alone at once, e.g. because it is large, and small ones must not wait for it. */
  isSeparate(source: Source): boolean;
  /** Alone, a source may wait for locks. Several skip locked rows; a source without a row is sent again, alone. */
  query(queryable: Queryable, sources: readonly Source[]): Promise<Row[]>;
}

/**
 * For joins: `r` is the running run with these ids. In a list always a lookup in runs_pkey: `any(array[…])`,
 * `is not distinct` and `|| ''` keep the planner from the index of all runs of a thread, and from that of all running
 * runs.
 */
export const isRunningRun = (sql: Record<"threadId" | "runId" | "attempt", string>, isOne = false): string =>
  isOne
    ? `r.thread_id = ${sql.threadId} and r.run_id = ${sql.runId} and r.attempt = ${sql.attempt} and r.status = 'running'`
    : `r.run_id = any(array[${sql.runId}]) and r.thread_id is not distinct from ${sql.threadId}
      and r.attempt = ${sql.attempt} and r.status || '' = 'running'`;

interface Waiting<Source, Row> {
  source: Source;
  resolve(row: Row | undefined): void;
  reject(error: unknown): void;
}

/** For `isSeparate`. */
export const LARGE_CHARACTERS = 50_000;

const GROUPED_AT_MOST = 32;
/** A statement that waits for a lock must not delay other threads. */
const WAIT_AT_MOST_MS = 20;

/**
 * While a statement is under way, the sources of other callers collect for the next one. A statement costs more than
 * its rows. Nothing waits while nothing is under way.
 */
class Group<Source, Row extends { thread_id: string }> {
  private underWay = 0;
  private waiting = new Map<string, Waiting<Source, Row>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly queryable: Queryable,
    private readonly statement: GroupedStatement<Source, Row>,
    private readonly logger: Logger,
  ) {}

  query(source: Source): Promise<Row | undefined> {
    const { statement, waiting } = this;
    const threadId = statement.threadOf(source);
    if (waiting.has(threadId) || statement.isSeparate(source)) return this.alone(source);
    return new Promise((resolve, reject) => {
      waiting.set(threadId, { source, resolve, reject });
      if (this.underWay === 0 || waiting.size === GROUPED_AT_MOST) void this.send();
      else this.timer ??= setTimeout(() => void this.send(), WAIT_AT_MOST_MS);
    });
  }

  private async alone(source: Source): Promise<Row | undefined> {
    return (await this.statement.query(this.queryable, [source]))[0];
  }

  /** Never rejects. */
  private async send(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    // In one order for all processes: groups that insert the same threads would deadlock in different ones.
    const group = [...this.waiting].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, waiting]) => waiting);
    this.waiting = new Map();
    this.underWay += 1;
    const left = group.length === 1 ? group : await this.together(group);
    const ends = left.map(({ source, resolve, reject }) => this.alone(source).then(resolve, reject));
    if (group.length === 1) await ends[0];
    this.underWay -= 1;
    if (this.waiting.size > 0) void this.send();
  }

  /** Returns those that are to be sent alone. */
  private async together(group: readonly Waiting<Source, Row>[]): Promise<readonly Waiting<Source, Row>[]> {
    const { statement } = this;
    const sources = group.map(({ source }) => source);
    try {
      const rows = await statement.query(this.queryable, sources);
      const byThread = new Map(rows.map((row) => [row.thread_id, row]));
      return group.filter(({ source, resolve }) => {
        const row = byThread.get(statement.threadOf(source));
        if (row !== undefined) resolve(row);
        return row === undefined;
      });
    } catch (error) {
      // One bad source, or a deadlock, fails the whole group. Alone, each gets its own answer.
      if (!isPassing(error) || isContention(error)) {
        this.logger.debug({ err: error }, "a shared statement failed, so each of its callers sends its own");
        return group;
      }
      // The group may be committed.
      for (const { reject } of group) reject(error);
      return [];
    }
  }
}

/** Returns a function that sends a source with those of other callers. */
export const createGrouping = (queryable: Queryable, logger: Logger) => {
  const groups = new Map<unknown, Group<never, never>>();
  return <Source, Row extends { thread_id: string }>(
    statement: GroupedStatement<Source, Row>,
    source: Source,
  ): Promise<Row | undefined> => {
    const group = groups.get(statement) ?? new Group<Source, Row>(queryable, statement, logger);
    groups.set(statement, group as Group<never, never>);
    return (group as Group<Source, Row>).query(source);
  };
};

export type Grouping = ReturnType<typeof createGrouping>;
