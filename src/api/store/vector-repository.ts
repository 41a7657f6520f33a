import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../platform/database/database.ts";
import type { ItemAddress } from "./addresses.ts";
import { createStoreRepository, type NewItem } from "./repository.ts";
import { ADD_VECTORS, FORGET_OTHER_TEXTS, KNOWN_TEXTS } from "./vector-statements.ts";

/** `hash` is hexadecimal. */
export interface TextOfItem extends ItemAddress {
  hash: string;
}

export interface VectorRepository {
  knownTexts(visibility: Visibility<"store">, addresses: readonly ItemAddress[]): Promise<TextOfItem[]>;
  /**
   * Stores items like `StoreRepository.put`, and makes `texts` their only indexed texts. Returns false and stores
   * nothing if the database and `vectors` lack a text's vector.
   * @param vectors by hash, in pgvector's text form
   * @param embeddedBy the model
   */
  put(
    visibility: Visibility<"store">,
    items: readonly NewItem[],
    texts: readonly TextOfItem[],
    vectors: ReadonlyMap<string, string>,
    embeddedBy: string,
  ): Promise<boolean>;
}

/** Rolls the transaction back. */
class VectorMissing extends Error {}

const addressJson = (addresses: readonly ItemAddress[]): string =>
  JSON.stringify(addresses.map(({ namespace, key }) => ({ namespace, key })));

export const createVectorRepository = (database: Database): VectorRepository => ({
  async knownTexts(_visibility, addresses) {
    if (addresses.length === 0) return [];
    return await KNOWN_TEXTS.query<TextOfItem>(database, { addresses: addressJson(addresses) });
  },

  async put(visibility, items, texts, vectors, embeddedBy) {
    if (items.length === 0) return true;
    try {
      await database.transaction(async (transaction) => {
        // The put locks the items and so their vectors.
        await createStoreRepository(transaction, database).put(visibility, items);
        const missing = await FORGET_OTHER_TEXTS.query<TextOfItem>(transaction, {
          addresses: addressJson(items),
          texts: JSON.stringify(texts),
        });
        if (missing.length === 0) return;
        const rows = missing.map((text) => {
          const embedding = vectors.get(text.hash);
          if (embedding === undefined) throw new VectorMissing();
          return { ...text, embedding };
        });
        await ADD_VECTORS.query(transaction, { texts: JSON.stringify(rows), model: embeddedBy });
      });
      return true;
    } catch (error) {
      if (error instanceof VectorMissing) return false;
      throw error;
    }
  },
});
