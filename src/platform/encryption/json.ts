/**
 * Sealed values within JSON. A value is replaced by a text, its sealed JSON, so keys stay where they are: the database
 * merges objects by their keys, whose values it can't read. What of each column is sealed is declared in columns.ts.
 */

import { EncryptionError, invalid, type ThreadloomError } from "../domain/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { setProperty } from "../lib/properties.ts";
import { isEncrypted, type Cipher, type Places } from "./cipher.ts";

/**
 * A text that stands as a value in JSON; behind a backslash it would be part of another. No key of an object: none is ever
 * sealed, and a key that opened would be whatever JSON somebody else has stored.
 */
const ENCRYPTED_VALUE = /(?<!\\)"(enc1:[\w-]{6}:[A-Za-z0-9+/]+={0,2})"(?!\s*:)/g;

const HOLDS_ENCRYPTED = '"enc1:';

/** JSON of a row that holds sealed values. Only the ids of the row say where they were sealed: see `decryptRow` of columns.ts. */
export class EncryptedJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Throws an `EncryptionError`: an answer was made of a row that nobody opened. */
  toJSON(): never {
    throw new EncryptionError("A column that holds encrypted values was read without opening them.");
  }
}

/** JSON as a row is read: sealed values wait for who knows the row. */
export const parseStoredJson = (text: string): unknown =>
  text.includes(HOLDS_ENCRYPTED) ? new EncryptedJson(text) : (JSON.parse(text) as unknown);

/**
 * JSON text with all of it open, once: what was sealed is not looked into. A text that none of the keys has sealed, or not
 * like this, is what somebody has written, or was damaged: it stays, since a page of rows must not fail for one of them.
 */
export const decryptJson = (cipher: Cipher, text: string, places: Places): string =>
  text.includes(HOLDS_ENCRYPTED)
    ? text.replace(
        ENCRYPTED_VALUE,
        (whole, encrypted: string) => cipher.decryptIfEncrypted(encrypted, ...places) ?? whole,
      )
    : text;

/**
 * The same, for who stores it again. Throws an `EncryptionError` for what is sealed with a key that is not there: left as it
 * is, it would be sealed once more, and then be no more than a text when the key is back.
 */
export const decryptKnownJson = (cipher: Cipher, text: string, places: Places): string =>
  text.includes(HOLDS_ENCRYPTED)
    ? text.replace(ENCRYPTED_VALUE, (whole, encrypted: string) =>
        cipher.lacksKeyOf(encrypted)
          ? cipher.decrypt(encrypted, ...places)
          : (cipher.decryptIfEncrypted(encrypted, ...places) ?? whole),
      )
    : text;

/** The same, where nothing stands open: throws an `EncryptionError` for what is damaged, too. */
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

/** JSON text that holds nothing but the sealed value: for a column of `json` or `jsonb` that nothing is looked for in. */
export const encryptJson = (cipher: Cipher, json: string, place: string): string =>
  `"${cipher.encrypt(json, place)}"`;

/** Where values are sealed. `alike`: equal ones are equal afterwards, so that the database can compare them. */
export interface EncryptionPlace {
  place: string;
  alike?: boolean;
}

/** Each value for itself; all keys stay. */
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
 * A configuration: each value of `configurable` and of `context` for itself, as the database merges those of assistant,
 * thread and request; of everything else what stands at its top.
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

/** The values of some keys at the top; all else stands open, but for what looks sealed. */
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

/** Metadata: the values of the chosen keys, wherever they stand, and what `encryptLookalikes` seals. */
export const encryptMetadata = (cipher: Cipher, metadata: JsonObject, place: string): JsonObject =>
  cipher.metadataKeys.size === 0
    ? encryptLookalikes(cipher, metadata, place)
    : (encryptWithin(cipher, metadata, cipher.metadataKeys, place) as JsonObject);

const NO_KEYS: ReadonlySet<string> = new Set();

/**
 * JSON that stands open, but for texts that look sealed. Whoever has a backup could store what he found there as his own, and
 * be shown what it says; sealed once more, it opens to what he wrote.
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
 * Throws `invalid` if a filter on metadata names a key whose values are sealed, or a text that is sealed for what it looks
 * like: it would find nothing, and the caller would take that for an answer.
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
