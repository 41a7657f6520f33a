import { createHash, randomBytes } from "node:crypto";

/**
 * A key is `tl_`, 43 characters of base62 (256 random bits) and 6 of checksum, so a double click selects it all. Secret
 * scanners need prefix and checksum, and `keys revoke` tells keys from names.
 */

const PREFIX = "tl_";
const KEY_BYTES = 32;
/** 256 bits are 42.99 characters of 5.95 bits. */
const SECRET_CHARACTERS = 43;
const CHECKSUM_BYTES = 4;
const CHECKSUM_CHARACTERS = 6;
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE = BigInt(ALPHABET.length);

const KEY = new RegExp(`^${PREFIX}([0-9A-Za-z]{${SECRET_CHARACTERS}})([0-9A-Za-z]{${CHECKSUM_CHARACTERS}})$`);

/** Hexadecimal digits of the hash: enough to distinguish an operator's keys. */
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

/** Show the key at once: only its hash is stored. */
export const makeKey = (): string => {
  const secret = toText(randomBytes(KEY_BYTES), SECRET_CHARACTERS);
  return `${PREFIX}${secret}${checksumOf(secret)}`;
};

/** Checks the format without the checksum, which costs a hash. */
export const looksLikeKey = (text: string): boolean => KEY.test(text);

export const isKeyText = (text: string): boolean => {
  const [, secret = "", checksum] = KEY.exec(text) ?? [];
  return checksum !== undefined && checksum === checksumOf(secret);
};

/**
 * SHA-256 instead of a slow hash such as scrypt: 256 random bits cannot be guessed, and each request pays for the hash.
 */
export const hashOf = (key: string): Buffer => createHash("sha256").update(key).digest();

export const idOf = (hash: Buffer): string => hash.toString("hex").slice(0, ID_DIGITS);
