import { randomBytes } from "node:crypto";
import { createCipher, type Cipher } from "./cipher.ts";
import { encryptionKey } from "./keys.ts";

/** The keys of a process, in a form that can be sent to graph processes. */
export interface EncryptionSetup {
  /** In base64; the first encrypts. */
  keys: readonly string[];
  metadataKeys: readonly string[];
}

/** Undefined without keys: nothing is encrypted then. */
export const openCipher = ({ keys, metadataKeys }: EncryptionSetup): Cipher | undefined => {
  const [first, ...others] = keys.map((key) => encryptionKey(Buffer.from(key, "base64")));
  return first === undefined ? undefined : createCipher([first, ...others], metadataKeys);
};

/** A cipher with a new random key: every encrypted text lacks its key there. */
export const newCipher = (): Cipher => createCipher([encryptionKey(randomBytes(32))]);
