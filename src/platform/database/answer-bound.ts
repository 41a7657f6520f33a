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

interface Asked {
  left: number;
  callback: Callback | undefined;
}

/**
 * A blocked event loop counts as one tick, and the sockets are read before the next. A timer per statement would cost
 * more than the rest of this file.
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
      // The running timer may fire at once.
      one.left += tickMs;
      timer ??= setTimeout(tick, tickMs).unref();
    },
    remove: (one: Asked): boolean => asked.delete(one),
  };
};

const isBounded = (statement: unknown): statement is BoundedStatement =>
  typeof statement === "object" && statement !== null && "answerMs" in statement;

/**
 * Fails a statement without an answer in time. The `query_timeout` of `pg` also fails answers that a blocked event loop
 * has not read.
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
      // As `pg` does: the stack of the socket's reader does not show the caller.
      if (error instanceof Error) Error.captureStackTrace(error);
      throw error;
    });
  };
  client.query = bounded as typeof client.query;
};
