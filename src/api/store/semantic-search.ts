import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { StoreIndexConfig } from "../../graphs/project/store-embedding.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { loadEmbedder } from "./embedding.ts";
import { createItems, type Items } from "./items.ts";
import type { StoreRepository } from "./repository.ts";
import { createVectorRepository, hasVectorTable, prepareVectorTable } from "./vectors.ts";

export interface OpenItemsOptions {
  database: Database;
  repository: StoreRepository;
  /** Undefined without semantic search. */
  index: StoreIndexConfig | undefined;
  logger: Logger;
}

const OTHERS = statement(
  { model: "text" },
  (sql) => `select exists (select from threadloom.store_vectors where embedded_by <> ${sql.model}) as found`,
);

/**
 * Without `index`, puts delete old vectors, so that a later semantic search finds no item by a former text. Throws
 * `GraphLoadError` without the model, `StartError` if the database can't hold vectors.
 */
export const openItems = async (options: OpenItemsOptions): Promise<Items> => {
  const { database, repository, index, logger } = options;
  if (index === undefined) {
    const vectors = (await hasVectorTable(database)) ? createVectorRepository(database) : undefined;
    return createItems({ repository, vectors, logger });
  }
  await prepareVectorTable(database, index.dims);
  const [others] = await OTHERS.query<{ found: boolean }>(database, { model: index.embed });
  if (others?.found === true) {
    logger.warn(
      { embed: index.embed },
      "some items of the store were indexed by another 'store.index.embed': a query finds them when they are stored again",
    );
  }
  const embedder = await loadEmbedder(index);
  const { embed, fields } = index;
  const vectors = createVectorRepository(database);
  return createItems({ repository, vectors, index: { embed, embedder, fields }, logger });
};
