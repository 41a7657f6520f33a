import { randomBytes } from "node:crypto";
import { createCipher, type Cipher } from "./cipher.ts";
import { encryptionKey } from "./keys.ts";

/** Can be sent to graph processes. */
export interface EncryptionSetup {
  /** Base64; the first key encrypts. */
  keys: readonly string[];
  metadataKeys: readonly string[];
}

/** Undefined without keys. */
export const openCipher = ({ keys, metadataKeys }: EncryptionSetup): Cipher | undefined => {
  const [first, ...others] = keys.map((key) => encryptionKey(Buffer.from(key, "base64")));
  return first === undefined ? undefined : createCipher([first, ...others], metadataKeys);
};

/** Has a new random key, so it can't decrypt stored texts. */
export const newCipher = (): Cipher => createCipher([encryptionKey(randomBytes(32))]);
