import type { Config } from "../../platform/config/config.ts";
import { StartError } from "../../platform/domain/errors.ts";
import type { Cipher } from "../../platform/encryption/cipher.ts";
import type { EncryptionSetup } from "../../platform/encryption/setup.ts";
import type { StoreIndexConfig } from "../../graphs/project/store-embedding.ts";

/** What this server and its graph processes seal with. */
export const encryptionOf = (config: Config): EncryptionSetup => ({
  keys: [...config.encryptionKeys, ...config.encryptionFallbackKeys],
  metadataKeys: config.encryptedMetadataKeys,
});

/**
 * Vectors say what their texts say, near enough to find out, and pgvector can't compare them sealed. Throws StartError.
 */
export const assertNoVectors = (cipher: Cipher | undefined, index: StoreIndexConfig | undefined): void => {
  if (cipher === undefined || index === undefined) return;
  throw new StartError(
    "Refusing to start: store.index of langgraph.json stores vectors, which can't be encrypted and give their texts away, " +
      "though LANGGRAPH_AES_KEY asks for encryption. Take one of the two out.",
  );
};
