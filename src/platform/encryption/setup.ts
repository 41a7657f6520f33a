import { randomBytes } from "node:crypto";
import { createCipher, type Cipher } from "./cipher.ts";
import { encryptionKey } from "./keys.ts";

/** What a process needs to seal and to open, as it is handed on. */
export interface EncryptionSetup {
  /** In base64; the first seals. */
  keys: readonly string[];
  metadataKeys: readonly string[];
}

/** Undefined without keys: then nothing is sealed. */
export const openCipher = ({ keys, metadataKeys }: EncryptionSetup): Cipher | undefined => {
  const [first, ...others] = keys.map((key) => encryptionKey(Buffer.from(key, "base64")));
  return first === undefined ? undefined : createCipher([first, ...others], metadataKeys);
};

/** One with a key of its own, which has sealed nothing: by it all that is sealed lacks its key. */
export const newCipher = (): Cipher => createCipher([encryptionKey(randomBytes(32))]);
