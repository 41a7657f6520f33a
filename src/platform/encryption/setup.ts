import { randomBytes } from "node:crypto";
import { createCipher, type Cipher } from "./cipher.ts";
import { encryptionKey } from "./keys.ts";

/** Can be sent to graph processes. */
export interface EncryptionSetup {
  /** In base64; the first encrypts. */
  keys: readonly string[];
  metadataKeys: readonly string[];
}

/** Undefined without keys. */
export const openCipher = ({ keys, metadataKeys }: EncryptionSetup): Cipher | undefined => {
  const [first, ...others] = keys.map((key) => encryptionKey(Buffer.from(key, "base64")));
  return first === undefined ? undefined : createCipher([first, ...others], metadataKeys);
};

/** With a new random key: every encrypted text lacks its key. */
export const newCipher = (): Cipher => createCipher([encryptionKey(randomBytes(32))]);
