import type { Logger } from "../lib/logger.ts";
import { isContention, isPassing } from "./passing-faults.ts";
import type { Queryable } from "./queryable.ts";

/** A statement for one thread that also exists in a form for many threads. */
export interface GroupedStatement<Source, Row> {
  /** A group has one source per thread, because a statement cannot write a row twice. */
  threadOf(source: Source): string;
  /** Sent alone at once, e.g. because it is large, and small ones must not wait for it. */
  isSeparate(source: Source): boolean;
  /** May wait for locks. */
  alone(queryable: Queryable, source: Source): Promise<Row | undefined>;
  /**
   * Rows by thread id. Must skip locked rows: a statement that holds locks and waits for others can deadlock. A source
   * without a row is sent again, alone.
   */
  together(queryable: Queryable, sources: readonly Source[]): Promise<ReadonlyMap<string, Row>>;
}

interface Waiting<Source, Row> {
  source: Source;
  resolve(row: Row | undefined): void;
  reject(error: unknown): void;
}

/** For `isSeparate`. */
export const LARGE_CHARACTERS = 50_000;

const GROUPED_AT_MOST = 32;
const NO_ROWS: ReadonlyMap<string, never> = new Map<string, never>();
/** A statement that waits for a lock must not delay other threads. */
const WAIT_AT_MOST_MS = 20;

/**
 * While a statement is under way, the sources of other callers collect for the next one. A statement costs more than
 * its rows. Nothing waits while nothing is under way.
 */
class Group<Source, Row> {
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
    if (waiting.has(threadId) || statement.isSeparate(source)) return statement.alone(this.queryable, source);
    if (this.underWay === 0) return this.first(source);
    return new Promise((resolve, reject) => {
      waiting.set(threadId, { source, resolve, reject });
      if (waiting.size === GROUPED_AT_MOST) this.send();
      else this.timer ??= setTimeout(() => this.send(), WAIT_AT_MOST_MS);
    });
  }

  private async first(source: Source): Promise<Row | undefined> {
    this.underWay += 1;
    try {
      return await this.statement.alone(this.queryable, source);
    } finally {
      this.ended();
    }
  }

  private ended(): void {
    this.underWay -= 1;
    if (this.waiting.size > 0) this.send();
  }

  private send(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    // In one order for all processes: groups that insert the same threads would deadlock in different ones.
    const group = [...this.waiting].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, waiting]) => waiting);
    this.waiting = new Map();
    const [{ source, resolve, reject }] = group as [Waiting<Source, Row>];
    if (group.length === 1) this.first(source).then(resolve, reject);
    else void this.answer(group);
  }

  /** Never rejects. */
  private async answer(group: readonly Waiting<Source, Row>[]): Promise<void> {
    this.underWay += 1;
    const rows = await this.together(group);
    for (const { source, resolve, reject } of rows === undefined ? [] : group) {
      const row = rows?.get(this.statement.threadOf(source));
      if (row === undefined) this.statement.alone(this.queryable, source).then(resolve, reject);
      else resolve(row);
    }
    this.ended();
  }

  /** Undefined: the callers have the error. */
  private async together(
    group: readonly Waiting<Source, Row>[],
  ): Promise<ReadonlyMap<string, Row> | undefined> {
    try {
      return await this.statement.together(
        this.queryable,
        group.map(({ source }) => source),
      );
    } catch (error) {
      if (isPassing(error) && !isContention(error)) {
        for (const { reject } of group) reject(error);
        return undefined;
      }
      // One bad source, or a deadlock, fails the whole group. Alone, each gets its own answer.
      this.logger.debug({ err: error }, "a shared statement failed, so each of its callers sends its own");
      return NO_ROWS;
    }
  }
}

/** Returns a function that sends a source with those of other callers. */
export const createGrouping = (queryable: Queryable, logger: Logger) => {
  const groups = new Map<unknown, Group<never, unknown>>();
  return <Source, Row>(
    statement: GroupedStatement<Source, Row>,
    source: Source,
  ): Promise<Row | undefined> => {
    let group = groups.get(statement) as Group<Source, Row> | undefined;
    if (group === undefined) {
      group = new Group(queryable, statement, logger);
      groups.set(statement, group as Group<never, unknown>);
    }
    return group.query(source);
  };
};

export type Grouping = ReturnType<typeof createGrouping>;
