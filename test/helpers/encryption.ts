import type { Cipher } from "../../src/platform/encryption/cipher.ts";
import { parseKeys } from "../../src/platform/encryption/keys.ts";
import { openCipher } from "../../src/platform/encryption/setup.ts";

const given = process.env.TEST_AES_KEY ?? "";

/** `TEST_AES_KEY=… npx vitest run …` encrypts what the servers of the tests store. */
export const IS_ENCRYPTED = given !== "";

/** Keys as a `Config` holds them. */
export const keysOf = (text: string): string[] => {
  const keys = parseKeys(text);
  if (keys === undefined) throw new Error("These are no keys.");
  return keys.map((key) => key.toString("base64"));
};

export const TEST_KEYS = keysOf(IS_ENCRYPTED ? given : "a key of a test, of 32 bytes ...");

export const cipherOf = (text: string, metadataKeys: string[] = []): Cipher => {
  const cipher = openCipher({ keys: keysOf(text), metadataKeys });
  if (cipher === undefined) throw new Error("There is no key.");
  return cipher;
};

/** Without keys unless the tests are to be run with encryption. */
export const TEST_ENCRYPTION = { keys: IS_ENCRYPTED ? TEST_KEYS : [], metadataKeys: [] };
