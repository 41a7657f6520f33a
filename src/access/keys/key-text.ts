import { createHash, randomBytes } from "node:crypto";

/**
 * The text of a key: `tl_`, 43 characters of base62 for 256 random bits, 6 for a checksum. Letters and digits alone, so that a
 * double click takes all of it. Prefix and checksum let scanners of repositories find a leaked key and nothing else, and let
 * `keys revoke` tell a key from a name. What a server is sent is compared by its hash, whatever it looks like.
 */

const PREFIX = "tl_";
const KEY_BYTES = 32;
/** 256 bits have 42.99 characters of 5.95 bits. */
const SECRET_CHARACTERS = 43;
const CHECKSUM_BYTES = 4;
const CHECKSUM_CHARACTERS = 6;
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE = BigInt(ALPHABET.length);

const KEY = new RegExp(`^${PREFIX}([0-9A-Za-z]{${SECRET_CHARACTERS}})([0-9A-Za-z]{${CHECKSUM_CHARACTERS}})$`);

/** Hexadecimal digits of a key's hash that name the key: enough to tell an operator's keys apart. */
const ID_DIGITS = 12;

const toText = (bytes: Buffer, characters: number): string => {
  let rest = BigInt(`0x${bytes.toString("hex")}`);
  let text = "";
  while (text.length < characters) {
    text = `${ALPHABET[Number(rest % BASE)]}${text}`;
    rest /= BASE;
  }
  return text;
};

const checksumOf = (secret: string): string =>
  toText(
    createHash("sha256").update(`${PREFIX}${secret}`).digest().subarray(0, CHECKSUM_BYTES),
    CHECKSUM_CHARACTERS,
  );

/** A new key. It has to be shown to somebody now: only its hash is kept. */
export const makeKey = (): string => {
  const secret = toText(randomBytes(KEY_BYTES), SECRET_CHARACTERS);
  return `${PREFIX}${secret}${checksumOf(secret)}`;
};

/** Whether a text has this form; whether its checksum is right costs a hash more. */
export const looksLikeKey = (text: string): boolean => KEY.test(text);

/** Whether a text is a whole key of this form. */
export const isKeyText = (text: string): boolean => {
  const [, secret = "", checksum] = KEY.exec(text) ?? [];
  return checksum !== undefined && checksum === checksumOf(secret);
};

/**
 * SHA-256, and not a slow hash like scrypt: that makes guessing passwords dear, and 256 random bits can't be guessed, while
 * each request would pay for it.
 */
export const hashOf = (key: string): Buffer => createHash("sha256").update(key).digest();

/** What a key is called in lists and logs. */
export const idOf = (hash: Buffer): string => hash.toString("hex").slice(0, ID_DIGITS);
