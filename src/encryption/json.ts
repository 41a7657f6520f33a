/**
 * Sealed values within JSON. A value is replaced by a text, its sealed JSON, so keys stay where they are: the database
 * merges objects by their keys, whose values it can't read. Any text of a JSON that one of the keys has sealed is opened
 * when it is read, so readers need not know what was sealed.
 */

import { invalid, type ThreadloomError } from "../domain/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { toJsonb } from "../lib/jsonb.ts";
import { setProperty } from "../values/properties.ts";
import { isSealed, type Cipher } from "./cipher.ts";

/** The database moves values from row to row, and a reader may ask for one alone: so their place is no more than this. */
const PLACE = "json";

/**
 * A text that stands as a value in JSON; behind a backslash it would be part of another. No key of an object: none is ever
 * sealed, and a key that opened would be whatever JSON somebody else has stored.
 */
const SEALED_VALUE = /(?<!\\)"(enc1:[\w-]{6}:[A-Za-z0-9+/]+={0,2})"(?!\s*:)/g;

/**
 * JSON text with all of it open, once: what was sealed is not looked into. A text that none of the keys has sealed, or not
 * like this, is what somebody has written, or was damaged: it stays, since a page of rows must not fail for one of them.
 */
export const openJson = (cipher: Cipher, text: string): string =>
  text.includes('"enc1:')
    ? text.replace(SEALED_VALUE, (whole, sealed: string) => cipher.openIfSealed(sealed, PLACE) ?? whole)
    : text;

/**
 * The same, for who stores it again. Throws an `EncryptionError` for what is sealed with a key that is not there: left as it
 * is, it would be sealed once more, and then be no more than a text when the key is back.
 */
export const openKnownJson = (cipher: Cipher, text: string): string =>
  text.includes('"enc1:')
    ? text.replace(SEALED_VALUE, (whole, sealed: string) =>
        cipher.lacksKeyOf(sealed)
          ? cipher.open(sealed, PLACE)
          : (cipher.openIfSealed(sealed, PLACE) ?? whole),
      )
    : text;

/** The same, where nothing stands open: throws an `EncryptionError` for what is damaged, too. */
export const openUndamagedJson = (cipher: Cipher, text: string): string =>
  text.includes('"enc1:')
    ? text.replace(SEALED_VALUE, (whole, sealed: string) =>
        cipher.canOpen(sealed) || cipher.lacksKeyOf(sealed) ? cipher.open(sealed, PLACE) : whole,
      )
    : text;

export const sealValue = (cipher: Cipher, value: unknown): string =>
  cipher.seal(JSON.stringify(value), PLACE);

/** JSON text that holds nothing but the sealed value: for a column of `json` or `jsonb` that nothing is looked for in. */
export const sealJson = (cipher: Cipher, json: string): string => `"${cipher.seal(json, PLACE)}"`;

/** Each value for itself; all keys stay. `among`: equal values that are sealed among the same are equal afterwards. */
export const sealEach = (cipher: Cipher, object: JsonObject, among?: string): JsonObject => {
  const sealed: JsonObject = {};
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    const text = JSON.stringify(value);
    setProperty(
      sealed,
      key,
      among === undefined ? cipher.seal(text, PLACE) : cipher.sealAlike(text, PLACE, among),
    );
  }
  return sealed;
};

/**
 * A configuration: each value of `configurable` and of `context` for itself, as the database merges those of assistant,
 * thread and request; of everything else what stands at its top.
 */
export const sealConfig = (cipher: Cipher, config: JsonObject, among?: string): JsonObject => {
  const sealed: JsonObject = {};
  for (const [key, value] of Object.entries(config)) {
    const isMerged = (key === "configurable" || key === "context") && isJsonObject(value);
    if (isMerged) setProperty(sealed, key, sealEach(cipher, value, among));
    else setProperty(sealed, key, sealEach(cipher, { value }, among).value);
  }
  return sealed;
};

/** Metadata: the values of the chosen keys, wherever they stand, and what `sealLookalikes` seals. */
export const sealMetadata = (cipher: Cipher, metadata: JsonObject): JsonObject =>
  cipher.metadataKeys.size === 0
    ? sealLookalikes(cipher, metadata)
    : (sealWithin(cipher, metadata, cipher.metadataKeys) as JsonObject);

const NO_KEYS: ReadonlySet<string> = new Set();

/**
 * JSON that stands open, but for texts that look sealed. Whoever has a backup could store what he found there as his own, and
 * be shown what it says; sealed once more, it opens to what he wrote.
 */
export const sealLookalikes = <Json extends JsonValue>(cipher: Cipher, json: Json): Json =>
  hasLookalike(json) ? (sealWithin(cipher, json, NO_KEYS) as Json) : json;

const hasLookalike = (value: JsonValue | undefined): boolean => {
  if (typeof value === "string") return isSealed(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some(hasLookalike);
};

const sealWithin = (cipher: Cipher, value: JsonValue, keys: ReadonlySet<string>): JsonValue => {
  if (Array.isArray(value)) return value.map((item) => sealWithin(cipher, item, keys));
  if (typeof value === "string" && isSealed(value)) return sealValue(cipher, value);
  if (!isJsonObject(value)) return value;
  const sealed: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue;
    setProperty(sealed, key, keys.has(key) ? sealValue(cipher, item) : sealWithin(cipher, item, keys));
  }
  return sealed;
};

/*
 * For who stores a column of `jsonb` and may have a cipher: its JSON text, sealed as it has to be.
 */

export const storedConfig = (cipher: Cipher | undefined, config: JsonObject): string =>
  JSON.stringify(cipher === undefined ? config : sealConfig(cipher, config));

export const storedContext = (cipher: Cipher | undefined, context: JsonObject): string =>
  JSON.stringify(cipher === undefined ? context : sealEach(cipher, context));

export const storedMetadata = (cipher: Cipher | undefined, metadata: JsonObject): string =>
  JSON.stringify(cipher === undefined ? metadata : sealMetadata(cipher, metadata));

/** Of a thread. None are `{}`, which the database asks for. */
export const storedInterrupts = (cipher: Cipher | undefined, json: string): string =>
  cipher === undefined || json === "{}" ? toJsonb(json).jsonb : sealJson(cipher, json);

export const storedError = (cipher: Cipher | undefined, error: JsonObject | null): string | null =>
  error === null
    ? null
    : cipher === undefined
      ? toJsonb(JSON.stringify(error)).jsonb
      : sealJson(cipher, JSON.stringify(error));

export const notSearchable = (key: string): ThreadloomError =>
  invalid(`'metadata': the values of '${key}' are encrypted, so nothing can be found by them.`);

/**
 * Throws `invalid` if a filter on metadata names a key whose values are sealed, or a text that is sealed for what it looks
 * like: it would find nothing, and the caller would take that for an answer.
 */
export const assertSearchable = (cipher: Cipher | undefined, filter: JsonValue | undefined): void => {
  if (cipher === undefined) return;
  if (typeof filter === "string" && isSealed(filter))
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
