/**
 * Encrypted values within JSON. An encrypted text replaces a value and the keys stay, because the database merges
 * objects by keys. columns.ts declares which part of each column is encrypted.
 */

import { EncryptionError, invalid, type ThreadloomError } from "../domain/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { setProperty } from "../lib/properties.ts";
import { isEncrypted, type Cipher, type Places } from "./cipher.ts";

/**
 * An encrypted text that is a whole JSON value: no backslash before, which would make it part of another text. Not a
 * key: the server encrypts none, and a forged key would decrypt to another's JSON.
 */
const ENCRYPTED_VALUE = /(?<!\\)"(enc1:[\w-]{6}:[A-Za-z0-9+/]+={0,2})"(?!\s*:)/g;

const HOLDS_ENCRYPTED = '"enc1:';

/**
 * JSON of a row that contains encrypted values. Only the row's ids tell their place: see `decryptRow` of columns.ts.
 */
export class EncryptedJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Throws an `EncryptionError`: an answer was built from a row that was not decrypted. */
  toJSON(): never {
    throw new EncryptionError("A column that holds encrypted values was read without opening them.");
  }
}

/** Parses the JSON of a row. `decryptRow` decrypts encrypted values later. */
export const parseStoredJson = (text: string): unknown =>
  text.includes(HOLDS_ENCRYPTED) ? new EncryptedJson(text) : (JSON.parse(text) as unknown);

/**
 * JSON text with its encrypted values decrypted, without looking into decrypted ones. Texts that no key has encrypted
 * stay: they are a caller's text or damaged, and one row must not fail a page of rows.
 */
export const decryptJson = (cipher: Cipher, text: string, places: Places): string =>
  text.includes(HOLDS_ENCRYPTED)
    ? text.replace(
        ENCRYPTED_VALUE,
        (whole, encrypted: string) => cipher.decryptIfEncrypted(encrypted, ...places) ?? whole,
      )
    : text;

/**
 * `decryptJson` before storing again. Throws an `EncryptionError` if a key is missing: encrypting such a text again
 * would turn it into a plain text once the key is back.
 */
export const decryptKnownJson = (cipher: Cipher, text: string, places: Places): string =>
  text.includes(HOLDS_ENCRYPTED)
    ? text.replace(ENCRYPTED_VALUE, (whole, encrypted: string) =>
        cipher.lacksKeyOf(encrypted)
          ? cipher.decrypt(encrypted, ...places)
          : (cipher.decryptIfEncrypted(encrypted, ...places) ?? whole),
      )
    : text;

/** `decryptKnownJson` for columns without a caller's own texts: also throws an `EncryptionError` for damaged texts. */
export const decryptUndamagedJson = (cipher: Cipher, text: string, places: Places): string =>
  text.includes(HOLDS_ENCRYPTED)
    ? text.replace(ENCRYPTED_VALUE, (whole, encrypted: string) =>
        cipher.canDecrypt(encrypted) || cipher.lacksKeyOf(encrypted)
          ? cipher.decrypt(encrypted, ...places)
          : whole,
      )
    : text;

export const encryptValue = (cipher: Cipher, value: unknown, place: string): string =>
  cipher.encrypt(JSON.stringify(value), place);

/** JSON text of one encrypted value, for a column of `json` or `jsonb` that no query searches. */
export const encryptJson = (cipher: Cipher, json: string, place: string): string =>
  `"${cipher.encrypt(json, place)}"`;

/** The place of encrypted values. `alike`: equal values have equal ciphertexts, so the database can compare them. */
export interface EncryptionPlace {
  place: string;
  alike?: boolean;
}

/** Encrypts each value by itself and keeps the keys. */
export const encryptEach = (
  cipher: Cipher,
  object: JsonObject,
  { place, alike }: EncryptionPlace,
): JsonObject => {
  const encrypted: JsonObject = {};
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    const text = JSON.stringify(value);
    setProperty(encrypted, key, alike ? cipher.encryptAlike(text, place) : cipher.encrypt(text, place));
  }
  return encrypted;
};

/**
 * A config: encrypts each value of `configurable` and `context` by itself, since the database merges these objects of
 * assistant, thread and request. Encrypts all else by top-level key.
 */
export const encryptConfig = (cipher: Cipher, config: JsonObject, place: EncryptionPlace): JsonObject => {
  const encrypted: JsonObject = {};
  for (const [key, value] of Object.entries(config)) {
    const isMerged = (key === "configurable" || key === "context") && isJsonObject(value);
    if (isMerged) setProperty(encrypted, key, encryptEach(cipher, value, place));
    else setProperty(encrypted, key, encryptEach(cipher, { value }, place).value);
  }
  return encrypted;
};

/** Encrypts the values of some top-level keys, and of the others only texts that look encrypted. */
export const encryptSome = (
  cipher: Cipher,
  object: JsonObject,
  keys: readonly string[],
  place: string,
): JsonObject => {
  const encrypted: JsonObject = {};
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    const stored = keys.includes(key)
      ? encryptValue(cipher, value, place)
      : encryptLookalikes(cipher, value, place);
    setProperty(encrypted, key, stored);
  }
  return encrypted;
};

/** Metadata: encrypts the values of the configured keys at any depth, and texts that look encrypted. */
export const encryptMetadata = (cipher: Cipher, metadata: JsonObject, place: string): JsonObject =>
  cipher.metadataKeys.size === 0
    ? encryptLookalikes(cipher, metadata, place)
    : (encryptWithin(cipher, metadata, cipher.metadataKeys, place) as JsonObject);

const NO_KEYS: ReadonlySet<string> = new Set();

/**
 * Encrypts texts that look encrypted. Without this, a caller with a backup could store a ciphertext from it as his own
 * text and read it decrypted.
 */
const encryptLookalikes = <Json extends JsonValue>(cipher: Cipher, json: Json, place: string): Json =>
  hasLookalike(json) ? (encryptWithin(cipher, json, NO_KEYS, place) as Json) : json;

const hasLookalike = (value: JsonValue | undefined): boolean => {
  if (typeof value === "string") return isEncrypted(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some(hasLookalike);
};

const encryptWithin = (
  cipher: Cipher,
  value: JsonValue,
  keys: ReadonlySet<string>,
  place: string,
): JsonValue => {
  if (Array.isArray(value)) return value.map((item) => encryptWithin(cipher, item, keys, place));
  if (typeof value === "string" && isEncrypted(value)) return encryptValue(cipher, value, place);
  if (!isJsonObject(value)) return value;
  const encrypted: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue;
    const stored = keys.has(key)
      ? encryptValue(cipher, item, place)
      : encryptWithin(cipher, item, keys, place);
    setProperty(encrypted, key, stored);
  }
  return encrypted;
};

export const notSearchable = (key: string): ThreadloomError =>
  invalid(`'metadata': the values of '${key}' are encrypted, so nothing can be found by them.`);

/**
 * Throws `invalid` if a metadata filter names an encrypted key or a text that looks encrypted: the filter would find
 * nothing, and the caller would believe the result.
 */
export const assertSearchable = (cipher: Cipher | undefined, filter: JsonValue | undefined): void => {
  if (cipher === undefined) return;
  if (typeof filter === "string" && isEncrypted(filter))
    throw invalid(
      "'metadata': texts that begin with 'enc1:' are encrypted, so nothing can be found by them.",
    );
  if (Array.isArray(filter)) for (const item of filter) assertSearchable(cipher, item);
  else if (isJsonObject(filter)) {
    for (const [key, value] of Object.entries(filter)) {
      if (cipher.metadataKeys.has(key)) throw notSearchable(key);
      assertSearchable(cipher, value);
    }
  }
};
