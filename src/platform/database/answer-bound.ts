import type pg from "pg";

export interface BoundedStatement {
  text: string;
  values: unknown[];
  answerMs: number;
}

type Callback = (error: Error | null | undefined, result?: pg.QueryResult) => void;

const TICKS = 10;
const UNANSWERED = "Query read timeout";

export const isUnanswered = (error: unknown): boolean =>
  error instanceof Error && error.message === UNANSWERED;

/** Sent, or queued in its connection. */
interface Asked {
  left: number;
  /** Undefined: answered or given up. */
  callback: Callback | undefined;
}

/**
 * Counts only the time in which the event loop ran: a block counts as one tick, and the next tick comes after the
 * sockets are read. One timer serves a connection, since a timer for each statement costs more than the rest of this
 * file.
 */
const createSweep = (tickMs: number) => {
  const asked = new Set<Asked>();
  let timer: NodeJS.Timeout | undefined;
  const tick = (): void => {
    if (asked.size === 0) timer = undefined;
    else timer?.refresh();
    for (const one of asked) {
      one.left -= tickMs;
      if (one.left > 0) continue;
      const { callback } = one;
      asked.delete(one);
      one.callback = undefined;
      callback?.(new Error(UNANSWERED));
    }
  };
  return {
    add(one: Asked): void {
      asked.add(one);
      // The first tick may come at once.
      one.left += tickMs;
      timer ??= setTimeout(tick, tickMs).unref();
    },
    remove: (one: Asked): boolean => asked.delete(one),
  };
};

const isBounded = (statement: unknown): statement is BoundedStatement =>
  typeof statement === "object" && statement !== null && "answerMs" in statement;

/**
 * Fails each statement without an answer in time. The `query_timeout` of `pg` also fails statements whose answers a
 * blocked event loop has not read.
 */
export const boundAnswers = (client: pg.PoolClient, usualMs: number): void => {
  const query = client.query.bind(client) as (text: unknown, values: unknown, callback: Callback) => void;
  const usual = createSweep(usualMs / TICKS);
  const ask = (statement: unknown, values: unknown, callback: Callback): void => {
    const bounded = isBounded(statement) ? statement : undefined;
    const answerMs = bounded?.answerMs ?? usualMs;
    const sweep = answerMs < usualMs ? createSweep(answerMs / TICKS) : usual;
    const asked: Asked = { left: answerMs, callback };
    sweep.add(asked);
    query(bounded?.text ?? statement, bounded?.values ?? values, (error, result) => {
      sweep.remove(asked);
      asked.callback?.(error, result);
    });
  };
  const bounded = (statement: unknown, values?: unknown, callback?: Callback): unknown => {
    if (callback) return ask(statement, values, callback);
    return new Promise((resolve, reject) => {
      ask(statement, values, (error, result) => (error ? reject(error) : resolve(result)));
    }).catch((error: unknown) => {
      // As `pg` does: a stack of the socket's reader does not name the caller.
      if (error instanceof Error) Error.captureStackTrace(error);
      throw error;
    });
  };
  client.query = bounded as typeof client.query;
};
