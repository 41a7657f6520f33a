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

/** A statement that was sent, or waits in its connection to be sent. */
interface Asked {
  /** Milliseconds that are left to it. */
  left: number;
  /** Undefined: it was answered, or given up. */
  callback: Callback | undefined;
}

/**
 * Counts the milliseconds in which the event loop ran. After a blocked loop timers run before sockets are read: the block
 * counts as one tick, and what arrived meanwhile is read before the next one. One timer for all statements of a connection,
 * which stops when there are none: a timer for each costs more than the rest of this file.
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
 * Makes each statement of a connection fail that has no answer after its time. The `query_timeout` of `pg` would do so
 * too, but fails statements whose answers a blocked event loop has not read yet.
 */
export const boundAnswers = (client: pg.PoolClient, usualMs: number): void => {
  const query = client.query.bind(client) as (text: unknown, values: unknown, callback: Callback) => void;
  const usual = createSweep(usualMs / TICKS);
  const ask = (statement: unknown, values: unknown, callback: Callback): void => {
    const bounded = isBounded(statement) ? statement : undefined;
    const answerMs = bounded?.answerMs ?? usualMs;
    // Ticks of a tenth: a bound that is shorter than the usual one needs its own.
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
      // As `pg` does: the stack of a socket's reader says nothing of who asked.
      if (error instanceof Error) Error.captureStackTrace(error);
      throw error;
    });
  };
  client.query = bounded as typeof client.query;
};
