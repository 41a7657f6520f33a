/** Encrypts values but not keys, because the database merges objects by keys. */

import { EncryptionError, invalid, notSearchable } from "../domain/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { setProperty } from "../lib/properties.ts";
import { isEncrypted, type Cipher, type Places } from "./cipher.ts";

/**
 * Matches whole values; after a backslash the quote belongs to another text. Skips keys: the server encrypts none, and
 * decrypted JSON would replace a forged key.
 */
const ENCRYPTED_VALUE = /(?<!\\)"(enc1:[\w-]{6}:[A-Za-z0-9+/]+={0,2})"(?!\s*:)/g;

const HOLDS_ENCRYPTED = '"enc1:';

/** `decrypted` of encryption.ts decrypts it, because decryption needs the row's ids. */
export class EncryptedJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Throws, because an answer was built from a row that was not decrypted. */
  toJSON(): never {
    throw new EncryptionError("A column that holds encrypted values was read without opening them.");
  }
}

export const parseStoredJson = (text: string): unknown =>
  text.includes(HOLDS_ENCRYPTED) ? new EncryptedJson(text) : (JSON.parse(text) as unknown);

/**
 * Does not look into decrypted values. A text that can't be decrypted stays: it may be a caller's own, and one row must
 * not fail a page. Throws an `EncryptionError` for a text that `mustOpen`.
 */
export const decryptJson = (
  cipher: Cipher,
  text: string,
  places: Places,
  mustOpen: (encrypted: string) => boolean = () => false,
): string =>
  text.includes(HOLDS_ENCRYPTED)
    ? text.replace(ENCRYPTED_VALUE, (whole, encrypted: string) =>
        mustOpen(encrypted)
          ? cipher.decrypt(encrypted, ...places)
          : (cipher.decryptIfEncrypted(encrypted, ...places) ?? whole),
      )
    : text;

/** For values that are stored again: a second encryption would turn a text without its key into plain text. */
export const decryptKnownJson = (cipher: Cipher, text: string, places: Places): string =>
  decryptJson(cipher, text, places, cipher.lacksKeyOf);

/** For columns without callers' own texts; also throws for damaged texts. */
export const decryptUndamagedJson = (cipher: Cipher, text: string, places: Places): string =>
  decryptJson(
    cipher,
    text,
    places,
    (encrypted) => cipher.canDecrypt(encrypted) || cipher.lacksKeyOf(encrypted),
  );

export const encryptValue = (cipher: Cipher, value: unknown, place: string): string =>
  cipher.encrypt(JSON.stringify(value), place);

/** For a column that no query searches while encryption is on. */
export const encryptJson = (cipher: Cipher, json: string, place: string): string =>
  `"${cipher.encrypt(json, place)}"`;

/** `alike`: see `encryptAlike`. */
interface EncryptionPlace {
  place: string;
  alike?: boolean;
}

const mapMembers = (object: JsonObject, change: (value: JsonValue, key: string) => JsonValue): JsonObject => {
  const changed: JsonObject = {};
  for (const [key, value] of Object.entries(object))
    if (value !== undefined) setProperty(changed, key, change(value, key));
  return changed;
};

export const encryptEach = (
  cipher: Cipher,
  object: JsonObject,
  { place, alike }: EncryptionPlace,
): JsonObject =>
  mapMembers(object, (value) => {
    const text = JSON.stringify(value);
    return alike ? cipher.encryptAlike(text, place) : cipher.encrypt(text, place);
  });

/**
 * Encrypts each value of `configurable` and `context` by itself, because the database merges these objects of
 * assistant, thread and request.
 */
export const encryptConfig = (cipher: Cipher, config: JsonObject, place: EncryptionPlace): JsonObject =>
  mapMembers(config, (value, key) =>
    (key === "configurable" || key === "context") && isJsonObject(value)
      ? encryptEach(cipher, value, place)
      : encryptEach(cipher, { value }, place).value!,
  );

/** Encrypts the values of `keys`, and texts that look encrypted. */
export const encryptSome = (
  cipher: Cipher,
  object: JsonObject,
  keys: readonly string[],
  place: string,
): JsonObject =>
  mapMembers(object, (value, key) =>
    keys.includes(key) ? encryptValue(cipher, value, place) : encryptLookalikes(cipher, value, place),
  );

/** Also encrypts the whole value of each key for which `staysOpen` returns false. */
export const encryptMetadata = (
  cipher: Cipher,
  metadata: JsonObject,
  place: string,
  staysOpen: (key: string) => boolean = () => true,
): JsonObject => {
  const open: JsonObject = {};
  const encrypted: JsonObject = {};
  for (const [key, value] of Object.entries(metadata)) {
    const stays = value === undefined || cipher.metadataKeys.has(key) || staysOpen(key);
    // Decryption does not look inside decrypted values.
    if (stays) setProperty(open, key, value);
    else setProperty(encrypted, key, encryptValue(cipher, value, place));
  }
  const within =
    cipher.metadataKeys.size === 0
      ? encryptLookalikes(cipher, open, place)
      : (encryptWithin(cipher, open, cipher.metadataKeys, place) as JsonObject);
  return { ...within, ...encrypted };
};

const NO_KEYS: ReadonlySet<string> = new Set();

/** Otherwise a caller with a backup could store a ciphertext as an own text and read it decrypted. */
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
  return mapMembers(value, (item, key) =>
    keys.has(key) ? encryptValue(cipher, item, place) : encryptWithin(cipher, item, keys, place),
  );
};

/** Throws `invalid` for encrypted keys and texts that look encrypted: the filter would wrongly find nothing. */
export const assertSearchable = (cipher: Cipher, filter: JsonValue | undefined): void => {
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
