import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { StateStorageError } from "../../../platform/domain/errors.ts";
import {
  hasLargeStrings,
  largeStringsOf,
  putBackLargeStrings,
  takeOutLargeStrings,
} from "../../values/large-strings.ts";
import { contentHash } from "../rows/content-hash.ts";
import { readContents, type StoredContent } from "./contents.ts";

/** Index: checkpoint_contents_pkey, also for the next statement. */
const READ_STRINGS = statement(
  { threadId: "uuid", hashes: "uuid[]" },
  (sql) => `select hash, content, object_id as "objectId" from threadloom.checkpoint_contents
  where thread_id = ${sql.threadId} and hash = any(${sql.hashes})`,
);

const FIND_STRINGS = statement(
  { threadId: "uuid", hashes: "uuid[]" },
  (sql) => `select hash from threadloom.checkpoint_contents
  where thread_id = ${sql.threadId} and hash = any(${sql.hashes})`,
);

/** `freeing.ts` runs only under a lock of the thread, which waits for this one. Index: threads_pkey. */
const KEEP_CONTENTS = statement(
  { threadId: "uuid" },
  (sql) => `select 1 from threadloom.threads where thread_id = ${sql.threadId} for share`,
);

/** The literals of all large strings to which the texts refer, by hash. A missing string is not in the result. */
export const readLargeStrings = async (
  queryable: Queryable,
  threadId: string,
  texts: readonly string[],
): Promise<Map<string, string>> => {
  const hashes = [...new Set(texts.flatMap(largeStringsOf).map(({ hash }) => hash))];
  const rows = await READ_STRINGS.query<StoredContent>(queryable, { threadId, hashes });
  return new Map((await readContents(queryable, rows)).map(({ hash, text }) => [hash, text]));
};

/** The whole texts. Throws StateStorageError if a string is missing, because its thread was deleted or pruned meanwhile. */
export const withLargeStrings = async (
  queryable: Queryable,
  threadId: string,
  texts: readonly string[],
): Promise<readonly string[]> => {
  if (!texts.some(hasLargeStrings)) return texts;
  const literals = await readLargeStrings(queryable, threadId, texts);
  return texts.map((text) => {
    const whole = putBackLargeStrings(text, literals);
    if (whole === undefined) throw new StateStorageError("A large string of a stored text is missing.");
    return whole;
  });
};

/**
 * A deletion, a rollback or a prune may free parts of a row between the statements that read both. The second try then
 * reads the present row.
 */
export const againIfFreed = async <Result>(read: () => Promise<Result>): Promise<Result> => {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof StateStorageError)) throw error;
    return await read();
  }
};

export interface TextsWithoutStrings {
  texts: readonly string[];
  /** For each text, the hashes of the strings that it leaves out, with commas. Null: no text leaves one out. */
  hashes: string[] | null;
  bytes: Array<number | null> | null;
}

/**
 * Leaves out the large strings that the state of the thread has. These stay until the transaction ends; after it, rows
 * must name them that `upkeep/freeing.ts` reads.
 */
export const withoutKnownStrings = async (
  transaction: Queryable,
  threadId: string,
  texts: readonly string[],
): Promise<TextsWithoutStrings> => {
  const hashes: string[] = [];
  for (const text of texts) {
    takeOutLargeStrings(text, (literal) => {
      hashes.push(contentHash(literal, transaction.encryption));
      return undefined;
    });
  }
  if (hashes.length === 0) return { texts, hashes: null, bytes: null };
  await KEEP_CONTENTS.query(transaction, { threadId });
  const rows = await FIND_STRINGS.query<{ hash: string }>(transaction, {
    threadId,
    hashes: [...new Set(hashes)],
  });
  const known = new Set(rows.map(({ hash }) => hash));
  const inOrder = hashes.values();
  const stored = texts.map((text) =>
    takeOutLargeStrings(text, () => {
      const { value: hash = "" } = inOrder.next();
      return known.has(hash) ? hash : undefined;
    }),
  );
  const references = stored.map(largeStringsOf);
  return {
    texts: stored,
    hashes: references.map((ofText) => [...new Set(ofText.map(({ hash }) => hash))].join()),
    bytes: references.map((ofText) => ofText.reduce((sum, { bytes }) => sum + bytes, 0) || null),
  };
};
