import { createHmac, createSecretKey, hkdfSync, type KeyObject } from "node:crypto";

/** What one configured key is used as: keys of their own for each use, so that none says anything of another. */
export interface EncryptionKey {
  /** Stands in each sealed text. Says nothing of the key to who does not have it. */
  id: string;
  /** What keys of AES are derived from. */
  aes: KeyObject;
  /** Of digests, by which equal texts are found. */
  digesting: KeyObject;
}

const KEY_ID_CHARACTERS = 6;
const LENGTHS = [16, 24, 32];
const HEX_OF_32_BYTES = /^[0-9a-f]{64}$/i;
const BASE64_OF_32_BYTES = /^[A-Za-z0-9+/_-]{43}=$/;

/**
 * A key as operators write it. As on the hosted server the text itself is the key, if it has 16, 24 or 32 bytes; 32
 * bytes may also be written as 64 hexadecimal digits or as base64. Undefined: neither.
 */
const bytesOf = (text: string): Buffer | undefined => {
  if (HEX_OF_32_BYTES.test(text)) return Buffer.from(text, "hex");
  if (BASE64_OF_32_BYTES.test(text)) return Buffer.from(text, "base64");
  const bytes = Buffer.from(text, "utf8");
  return LENGTHS.includes(bytes.length) ? bytes : undefined;
};

/**
 * Several keys are separated by commas. One key may hold commas itself: nothing of 16, 24 or 32 bytes is a list, for the
 * shortest one has 33. Undefined: one of them is no key.
 */
export const parseKeys = (text: string): Buffer[] | undefined => {
  const whole = bytesOf(text);
  if (whole !== undefined) return [whole];
  const keys = text.split(",").map((part) => bytesOf(part.trim()));
  return keys.includes(undefined) ? undefined : (keys as Buffer[]);
};

/** AES-256 whatever the length of the key: a shorter one is only easier to guess. */
export const encryptionKey = (bytes: Uint8Array): EncryptionKey => {
  const derive = (use: string): Buffer =>
    Buffer.from(hkdfSync("sha256", bytes, Buffer.alloc(0), `threadloom ${use}`, 32));
  const id = createHmac("sha256", derive("id")).digest("base64url").slice(0, KEY_ID_CHARACTERS);
  return {
    // A shell takes what begins with `-` for an option.
    id: id.replace(/^-/, "_"),
    aes: createSecretKey(derive("sealing")),
    digesting: createSecretKey(derive("digesting")),
  };
};
