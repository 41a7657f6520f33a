import type { Queryable } from "../../platform/database/database.ts";
import { StartError } from "../../platform/domain/errors.ts";
import type { StoreIndexConfig } from "../../graphs/project/store-embedding.ts";

/** Vectors nearly reveal their texts, and pgvector can't compare encrypted ones. @throws StartError */
export const assertNoVectors = ({ encryption }: Queryable, index: StoreIndexConfig | undefined): void => {
  if (!encryption.isOn || index === undefined) return;
  throw new StartError(
    "The server refuses to start: store.index of langgraph.json stores vectors, which reveal their texts and can't be encrypted, " +
      "although LANGGRAPH_AES_KEY is set. Remove one of the two.",
  );
};
