import { createHmac, createSecretKey, hkdfSync, type KeyObject } from "node:crypto";

/** Each use has its own key, so that no key reveals another. */
export interface EncryptionKey {
  /** Part of each encrypted text. Reveals nothing of the key. */
  id: string;
  aes: KeyObject;
  digesting: KeyObject;
}

const KEY_ID_CHARACTERS = 6;
const LENGTHS = [16, 24, 32];
const HEX_OF_32_BYTES = /^[0-9a-f]{64}$/i;
const BASE64_OF_32_BYTES = /^[A-Za-z0-9+/_-]{43}=$/;

/**
 * As on the hosted server, a text of 16, 24 or 32 bytes is the key itself. 32 bytes may also be 64 hexadecimal digits
 * or base64.
 */
const bytesOf = (text: string): Buffer | undefined => {
  if (HEX_OF_32_BYTES.test(text)) return Buffer.from(text, "hex");
  if (BASE64_OF_32_BYTES.test(text)) return Buffer.from(text, "base64");
  const bytes = Buffer.from(text, "utf8");
  return LENGTHS.includes(bytes.length) ? bytes : undefined;
};

/**
 * A text of 16, 24 or 32 bytes is one key, even with commas, because the shortest list has 33. Undefined: not a key.
 */
export const parseKeys = (text: string): Buffer[] | undefined => {
  const whole = bytesOf(text);
  if (whole !== undefined) return [whole];
  const keys = text.split(",").map((part) => bytesOf(part.trim()));
  return keys.includes(undefined) ? undefined : (keys as Buffer[]);
};

/** AES-256 for every key length; a shorter key is only easier to guess. */
export const encryptionKey = (bytes: Uint8Array): EncryptionKey => {
  const derive = (use: string): Buffer =>
    Buffer.from(hkdfSync("sha256", bytes, Buffer.alloc(0), `threadloom ${use}`, 32));
  const id = createHmac("sha256", derive("id")).digest("base64url").slice(0, KEY_ID_CHARACTERS);
  return {
    // A shell reads an argument that begins with `-` as an option.
    id: id.replace(/^-/, "_"),
    aes: createSecretKey(derive("sealing")),
    digesting: createSecretKey(derive("digesting")),
  };
};
