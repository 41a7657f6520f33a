import { openCipher, parseKeys, type Cipher } from "../../src/platform/encryption/cipher.ts";

const given = process.env.TEST_AES_KEY ?? "";

/** `TEST_AES_KEY=… npx vitest run …` encrypts the data of the tests' servers. */
export const IS_ENCRYPTED = given !== "";

/** Keys in the form of a `Config`. */
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

/** Without keys, unless the tests run with encryption. */
export const TEST_ENCRYPTION = { keys: IS_ENCRYPTED ? TEST_KEYS : [], metadataKeys: [] };
