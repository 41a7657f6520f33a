import type pg from "pg";

/** A statement whose answer is waited for longer, or shorter, than is usual. */
export interface BoundedStatement {
  text: string;
  values: unknown[];
  answerMs: number;
}

type Callback = (error: Error | null | undefined, result?: pg.QueryResult) => void;

/** A bound is counted in so many parts. */
const TICKS = 10;
/** As `pg` says it. */
const UNANSWERED = "Query read timeout";

/** Whether a statement failed because no answer came in time. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof Error && error.message === UNANSWERED;

/**
 * Calls back after so many milliseconds in which the event loop ran. After a blocked loop timers run before sockets are
 * read: the block counts as one tick, and what arrived meanwhile is read before the next one.
 */
const afterRunning = (milliseconds: number, expired: () => void): NodeJS.Timeout => {
  let left = TICKS;
  const timer = setTimeout(() => {
    left -= 1;
    if (left > 0) timer.refresh();
    else expired();
  }, milliseconds / TICKS);
  return timer;
};

const isBounded = (statement: unknown): statement is BoundedStatement =>
  typeof statement === "object" && statement !== null && "answerMs" in statement;

/**
 * Makes each statement of a connection fail that has no answer after its time. The `query_timeout` of `pg` would do so
 * too, but fails statements whose answers a blocked event loop has not read yet.
 */
export const boundAnswers = (client: pg.PoolClient, usualMs: number): void => {
  const query = client.query.bind(client) as (text: unknown, values: unknown, callback: Callback) => void;
  const ask = (statement: unknown, values: unknown, callback: Callback): void => {
    const bounded = isBounded(statement) ? statement : { text: statement, values, answerMs: usualMs };
    let isGivenUp = false;
    const timer = afterRunning(bounded.answerMs, () => {
      isGivenUp = true;
      callback(new Error(UNANSWERED));
    });
    query(bounded.text, bounded.values, (error, result) => {
      clearTimeout(timer);
      if (!isGivenUp) callback(error, result);
    });
  };
  const asked = (statement: unknown, values?: unknown, callback?: Callback): unknown => {
    if (callback) return ask(statement, values, callback);
    return new Promise((resolve, reject) => {
      ask(statement, values, (error, result) => (error ? reject(error) : resolve(result)));
    }).catch((error: unknown) => {
      // As `pg` does: the stack of a socket's reader says nothing of who asked.
      if (error instanceof Error) Error.captureStackTrace(error);
      throw error;
    });
  };
  client.query = asked as typeof client.query;
};
