import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../platform/database/database.ts";
import type { ItemAddress } from "./addresses.ts";
import { createStoreRepository, type NewItem } from "./repository.ts";
import { ADD_VECTORS, FORGET_OTHER_TEXTS, KNOWN_TEXTS } from "./vector-statements.ts";

/** A text of an item, by its hash (hex). */
export interface TextOfItem extends ItemAddress {
  hash: string;
}

export interface VectorRepository {
  /** The texts of these items that have vectors. One statement. */
  knownTexts(visibility: Visibility<"store">, addresses: readonly ItemAddress[]): Promise<TextOfItem[]>;
  /**
   * Stores items as `StoreRepository.put` does, and that `texts` are what they are found by; vectors of other texts
   * of theirs are forgotten. One transaction of up to three statements.
   *
   * Returns false, and stores nothing, if a text has a vector neither in the database nor in `vectors`.
   * @param vectors by hash, as pgvector writes them
   * @param embeddedBy what made them
   */
  put(
    visibility: Visibility<"store">,
    items: readonly NewItem[],
    texts: readonly TextOfItem[],
    vectors: ReadonlyMap<string, string>,
    embeddedBy: string,
  ): Promise<boolean>;
}

/** Ends a transaction that met a text without a vector. */
class VectorMissing extends Error {}

const addressJson = (addresses: readonly ItemAddress[]): string =>
  JSON.stringify(addresses.map(({ namespace, key }) => ({ namespace, key })));

/** The SQL of the vectors. */
export const createVectorRepository = (database: Database): VectorRepository => ({
  async knownTexts(_visibility, addresses) {
    if (addresses.length === 0) return [];
    return await database.query<TextOfItem>(KNOWN_TEXTS, [addressJson(addresses)]);
  },

  async put(visibility, items, texts, vectors, embeddedBy) {
    if (items.length === 0) return true;
    try {
      await database.transaction(async (transaction) => {
        // First, since it locks the items: from here on nobody else changes their vectors.
        await createStoreRepository(transaction, database).put(visibility, items);
        const missing = await transaction.query<TextOfItem>(FORGET_OTHER_TEXTS, [
          addressJson(items),
          JSON.stringify(texts),
        ]);
        if (missing.length === 0) return;
        const rows = missing.map((text) => {
          const embedding = vectors.get(text.hash);
          if (embedding === undefined) throw new VectorMissing();
          return { ...text, embedding };
        });
        await transaction.query(ADD_VECTORS, [JSON.stringify(rows), embeddedBy]);
      });
      return true;
    } catch (error) {
      if (error instanceof VectorMissing) return false;
      throw error;
    }
  },
});
