import { receiverDigest } from "../domain/webhook-address.ts";
import type { JsonObject } from "../lib/json.ts";
import { isEncrypted, openText, type Cipher, type Places } from "./cipher.ts";
import {
  decryptJson,
  decryptKnownJson,
  decryptUndamagedJson,
  encryptConfig,
  encryptEach,
  encryptJson,
  EncryptedJson,
  encryptMetadata,
  encryptSome,
} from "./json.ts";

/** `Key`: the ids of the row. `Stored`: the parameter of a statement. */
export interface EncryptedColumn<Key, Value, Stored = string> {
  readonly type: "json" | "jsonb" | "text" | "bytea";
  /** The place of the row comes first, then the places of the rows from which the database copies values. */
  places(key: Key): Places;
  /** Undefined: the column stores the value as it is. */
  plain: ((value: Value) => Stored) | undefined;
  encrypted(cipher: Cipher, value: Value, key: Key): Stored;
  /** `stored` comes from the driver. Undefined: only SQL reads the column. */
  decrypted?: (cipher: Cipher | undefined, stored: unknown, key: Key) => unknown;
  /**
   * Encrypts again with the newest key. `from` is the row that the database copied the text from; a column of bytes
   * takes and returns base64.
   * @throws EncryptionError if the text can't be decrypted; for metadata, only if the key is missing
   */
  reencrypted(cipher: Cipher, text: string, key: Key, from?: Key): string;
}

interface JsonKind<Value> {
  type: "json" | "jsonb";
  parse(json: string): Value;
  plain: ((value: Value) => string) | undefined;
  encrypt(cipher: Cipher, value: Value, place: string): string;
  /** A text that looks encrypted may be a caller's own. */
  mayHoldLookalikes?: boolean;
}

const ofObject = (
  type: "json" | "jsonb",
  encrypt: (cipher: Cipher, value: JsonObject, place: string) => JsonObject,
): JsonKind<JsonObject> => ({
  type,
  parse: (json) => JSON.parse(json) as JsonObject,
  plain: JSON.stringify,
  encrypt: (cipher, value, place) => JSON.stringify(encrypt(cipher, value, place)),
});

export const METADATA = { ...ofObject("jsonb", encryptMetadata), mayHoldLookalikes: true };
export const CONFIG = ofObject("json", (cipher, config, place) => encryptConfig(cipher, config, { place }));
/** The database compares this column with values of requests. */
export const COMPARED_CONFIG = ofObject("json", (cipher, config, place) =>
  encryptConfig(cipher, config, { place, alike: true }),
);
export const CONTEXT = ofObject("json", (cipher, context, place) => encryptEach(cipher, context, { place }));

export const WHOLE_JSON: JsonKind<string> = {
  type: "json",
  parse: (json) => json,
  plain: undefined,
  encrypt: encryptJson,
};
/** `{}` stands for no interrupts, and the database compares with it. */
export const INTERRUPTS: JsonKind<string> = {
  ...WHOLE_JSON,
  encrypt: (cipher, json, place) => (json === "{}" ? json : encryptJson(cipher, json, place)),
};

/** The members with user data. */
export const ENCRYPTED_KWARGS = [
  "input",
  "command",
  "webhook",
  "feedback_keys",
  "headers",
  "trace_context",
] as const;
export const KWARGS: JsonKind<string> = {
  ...WHOLE_JSON,
  encrypt: (cipher, json, place) =>
    JSON.stringify(encryptSome(cipher, JSON.parse(json) as JsonObject, ENCRYPTED_KWARGS, place)),
};

export const jsonColumn = <Key, Value>(
  { type, parse, plain, encrypt, mayHoldLookalikes = false }: JsonKind<Value>,
  places: (key: Key) => Places,
): EncryptedColumn<Key, Value> => ({
  type,
  places,
  plain,
  encrypted: (cipher, value, key) => encrypt(cipher, value, places(key)[0]),
  decrypted: (cipher, stored, key) =>
    cipher !== undefined && stored instanceof EncryptedJson
      ? (JSON.parse(decryptJson(cipher, stored.text, places(key))) as unknown)
      : stored,
  reencrypted(cipher, text, key, from) {
    const former = from === undefined ? [] : places(from);
    const decrypt = mayHoldLookalikes ? decryptKnownJson : decryptUndamagedJson;
    const own = places(key);
    return encrypt(cipher, parse(decrypt(cipher, text, [...own, ...former])), own[0]);
  },
});

export const textColumn = <Key>(placeOf: (key: Key) => string): EncryptedColumn<Key, string> => ({
  type: "text",
  places: (key) => [placeOf(key)],
  plain: undefined,
  encrypted: (cipher, text, key) => cipher.encrypt(text, placeOf(key)),
  decrypted: (cipher, stored, key) =>
    typeof stored === "string" && isEncrypted(stored) ? openText(cipher, stored, placeOf(key)) : stored,
  reencrypted(cipher, text, key) {
    const place = placeOf(key);
    return cipher.encrypt(cipher.decrypt(text, place), place);
  },
});

export const bytesColumn = <Key>(placeOf: (key: Key) => string): EncryptedColumn<Key, Buffer, Buffer> => {
  const encrypted = (cipher: Cipher, bytes: Buffer, key: Key): Buffer =>
    Buffer.from(cipher.encrypt(bytes.toString("utf8"), placeOf(key)));
  const decrypted = (cipher: Cipher | undefined, bytes: Buffer, key: Key): Buffer =>
    Buffer.from(openText(cipher, bytes.toString("utf8"), placeOf(key)));
  return {
    type: "bytea",
    places: (key) => [placeOf(key)],
    plain: undefined,
    encrypted,
    decrypted: (cipher, stored, key) =>
      cipher !== undefined && Buffer.isBuffer(stored) ? decrypted(cipher, stored, key) : stored,
    reencrypted: (cipher, text, key) =>
      encrypted(cipher, decrypted(cipher, Buffer.from(text, "base64"), key), key).toString("base64"),
  };
};

/**
 * Encrypts the address, because it may hold a token. The statement that ends the run needs the digest of the receiver
 * (engine/outbox/deliveries.ts).
 */
export const addressColumn = <Key>(placeOf: (key: Key) => string): EncryptedColumn<Key, string> => {
  const encrypted = (cipher: Cipher, address: string, place: string): string =>
    `${cipher.encrypt(address, place)} ${receiverDigest(cipher, address)}`;
  return {
    type: "text",
    places: (key) => [placeOf(key)],
    plain: undefined,
    encrypted: (cipher, address, key) => encrypted(cipher, address, placeOf(key)),
    reencrypted(cipher, text, key) {
      const place = placeOf(key);
      const address = isEncrypted(text) ? cipher.decrypt(text.split(" ", 1)[0] ?? "", place) : text;
      return encrypted(cipher, address, place);
    },
  };
};
