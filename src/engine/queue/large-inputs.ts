/**
 * The state of a thread usually has the large strings of its runs' inputs, such as images. After a run has ended, its
 * input refers to them.
 */

import type { Database, Queryable } from "../../platform/database/database.ts";
import { encryptedParameter, statement } from "../../platform/database/statement.ts";
import type { RunRow } from "../../platform/database/tables.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { withLargeStrings, withoutKnownStrings } from "../../state/checkpoints/texts.ts";
import { LARGE_STRING_CHARACTERS } from "../../state/values/large-strings.ts";

/** In JSON, a reference is a string between these control characters. */
const REFERENCE = /"\\u0001([^"\\]*)\\u0001"/g;
const RAW_REFERENCE = /\u0001([^\u0001]*)\u0001/g; // eslint-disable-line no-control-regex

interface InputOfRun {
  thread_id: string;
  run_id: string;
  kwargs: string;
  strings: string | undefined;
  stringBytes: number | null | undefined;
}

const STORE = statement(
  {
    threadId: ["uuid", ({ thread_id }: InputOfRun) => thread_id],
    runId: ["uuid", ({ run_id }: InputOfRun) => run_id],
    kwargs: encryptedParameter(
      "runs",
      "kwargs",
      ({ kwargs }: InputOfRun) => kwargs,
      ({ run_id }: InputOfRun) => ({ run_id }),
    ),
    strings: ["text", ({ strings }: InputOfRun) => strings],
    stringBytes: ["integer", ({ stringBytes }: InputOfRun) => stringBytes],
  },
  (sql) => `update threadloom.runs
  set kwargs = ${sql.kwargs}, strings = string_to_array(${sql.strings}, ',')::uuid[], string_bytes = ${sql.stringBytes}
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and status not in ('pending', 'running')`,
);

/** Loops, because each run would pay for the calls. */
const hasLargeString = (value: unknown): boolean => {
  const left = [value];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === "string" && one.length >= LARGE_STRING_CHARACTERS) return true;
    if (typeof one === "object" && one !== null) for (const part of Object.values(one)) left.push(part);
  }
  return false;
};

type EndedRun = Pick<RunRow, "thread_id" | "run_id" | "kwargs" | "delete_thread">;

/** For a run that has ended. Nobody waits for it: if it fails, the input only takes more room. */
export const storeInputOnce = (database: Database, run: EndedRun, logger: Logger): void => {
  if (run.delete_thread || !hasLargeString(run.kwargs)) return;
  store(database, run).catch((error: unknown) =>
    logger.debug({ err: error, run_id: run.run_id }, "the input of a run stays beside its state"),
  );
};

const store = async (database: Database, { thread_id, run_id, kwargs }: EndedRun): Promise<void> => {
  const text = JSON.stringify(kwargs);
  // A caller may write what looks like a reference.
  if (text.includes('"\\u0001')) return;
  await database.transaction(async (transaction) => {
    const { texts, hashes, bytes } = await withoutKnownStrings(transaction, thread_id, [text]);
    const [stored = ""] = texts;
    if (stored === text) return;
    await STORE.query(transaction, {
      thread_id,
      run_id,
      kwargs: stored.replace(RAW_REFERENCE, (_, reference: string) => `"\\u0001${reference}\\u0001"`),
      strings: hashes?.[0],
      stringBytes: bytes?.[0],
    });
  });
};

/** The rows of a thread with the inputs as the callers sent them. */
export const withWholeInputs = async <Row extends Pick<RunRow, "kwargs"> & { string_bytes: number | null }>(
  queryable: Queryable,
  threadId: string,
  rows: readonly Row[],
): Promise<Row[]> => {
  const texts = rows.map(({ kwargs, string_bytes }) => (string_bytes === null ? "" : textOf(kwargs)));
  const whole = await withLargeStrings(queryable, threadId, texts);
  return rows.map((row, index) =>
    row.string_bytes === null ? row : { ...row, kwargs: JSON.parse(whole[index]!) as RunRow["kwargs"] },
  );
};

const textOf = (kwargs: RunRow["kwargs"]): string =>
  JSON.stringify(kwargs).replace(REFERENCE, (_, reference: string) => `\u0001${reference}\u0001`);
