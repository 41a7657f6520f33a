import type { Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { StateStorageError } from "../../platform/domain/errors.ts";
import { referencesIn, takeOutLargeStrings, withoutReferences } from "../values/large-strings.ts";
import { readContents } from "./content-reader.ts";
import { contentHash } from "./contents.ts";

/* The texts of other tables of a thread: they leave out the large strings that its state has. */

/** Index: checkpoint_contents_pkey. */
const FIND_STRINGS = statement(
  { threadId: "uuid", hashes: "uuid[]" },
  (sql) => `select hash from threadloom.checkpoint_contents
  where thread_id = ${sql.threadId} and hash = any(${sql.hashes})`,
);

/** `freeUnreferenced` runs only under a lock of the thread, which waits for this one. Index: threads_pkey. */
const KEEP_CONTENTS = statement(
  { threadId: "uuid" },
  (sql) => `select 1 from threadloom.threads where thread_id = ${sql.threadId} for share`,
);

/** The whole texts. Throws StateStorageError if a string is missing, because its thread was deleted or pruned meanwhile. */
export const withLargeStrings = async (
  queryable: Queryable,
  threadId: string,
  texts: readonly string[],
): Promise<readonly string[]> => {
  const hashes = [...new Set(texts.flatMap(referencesIn))];
  if (hashes.length === 0) return texts;
  const literals = new Map<string, string>();
  for (const [index, hash] of hashes.entries()) {
    if (literals.has(hash)) continue;
    const wanted = hashes.slice(index).map((each) => ({ threadId, hash: each }));
    for (const found of await readContents(queryable, wanted)) literals.set(found.hash, found.text);
    if (!literals.has(hash)) throw new StateStorageError("A large string of a stored text is missing.");
  }
  return texts.map((text) => withoutReferences(text, (hash) => literals.get(hash) ?? ""));
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
 * must name them that `upkeep.ts` reads.
 */
export const withoutKnownStrings = async (
  transaction: Queryable,
  threadId: string,
  texts: readonly string[],
): Promise<TextsWithoutStrings> => {
  const literals = new Map<string, number>();
  const hashOf = (literal: string): string => {
    const hash = contentHash(literal, transaction.encryption);
    literals.set(hash, Buffer.byteLength(literal));
    return hash;
  };
  const taken = texts.map((text) => takeOutLargeStrings(text, hashOf));
  if (literals.size === 0) return { texts, hashes: null, bytes: null };
  await KEEP_CONTENTS.query(transaction, { threadId });
  const rows = await FIND_STRINGS.query<{ hash: string }>(transaction, {
    threadId,
    hashes: [...literals.keys()],
  });
  const known = new Set(rows.map(({ hash }) => hash));
  const stored = texts.map((text, index) =>
    referencesIn(taken[index]!).every((hash) => known.has(hash))
      ? taken[index]!
      : takeOutLargeStrings(text, (literal) => {
          const hash = hashOf(literal);
          return known.has(hash) ? hash : undefined;
        }),
  );
  const references = stored.map(referencesIn);
  return {
    texts: stored,
    hashes: references.map((hashes) => [...new Set(hashes)].join()),
    // A reader gets each repetition.
    bytes: references.map(
      (hashes) => hashes.reduce((sum, hash) => sum + (literals.get(hash) ?? 0), 0) || null,
    ),
  };
};
