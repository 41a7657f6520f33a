import type { Queryable } from "../../../platform/database/database.ts";
import { StateStorageError } from "../../../platform/domain/errors.ts";

export interface StoredContent {
  hash: string;
  /** As in the row. */
  content: string;
  /** The object that has the content. */
  objectId: string | null;
}

const OBJECTS_AT_ONCE = 8;

/** The texts in the order of the rows, from the object store if they are there. Leaves out missing objects. */
export const readContents = async (
  { encryption, objects }: Pick<Queryable, "encryption" | "objects">,
  stored: readonly StoredContent[],
): Promise<Array<{ hash: string; text: string }>> => {
  const opened = (hash: string, text: string) => ({
    hash,
    text: encryption.decryptedValue("checkpoint_contents", "content", text, { hash }),
  });
  if (stored.every(({ objectId }) => objectId === null))
    return stored.map(({ hash, content }) => opened(hash, content));
  if (objects === undefined)
    throw new StateStorageError("A stored value is in an object store, and OBJECT_STORE_URL is not set.");
  const textOf = async ({ hash, content, objectId }: StoredContent) => {
    try {
      return [opened(hash, objectId === null ? content : await objects.read(objectId))];
    } catch (error) {
      // Fails the reads that need it, as a missing row does, and not those of other threads.
      if (error instanceof StateStorageError) return [];
      throw error;
    }
  };
  const texts: Array<{ hash: string; text: string }> = [];
  for (let start = 0; start < stored.length; start += OBJECTS_AT_ONCE)
    texts.push(...(await Promise.all(stored.slice(start, start + OBJECTS_AT_ONCE).map(textOf))).flat());
  return texts;
};
