/** Seals texts before they are stored, and opens those that are read. */

import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  randomBytes,
  type KeyObject,
} from "node:crypto";
import { EncryptionError } from "../domain/errors.ts";
import type { EncryptionKey } from "./keys.ts";

/**
 * `enc1:`, the key's id, a colon, and in base64: salt, nonce, ciphertext, tag. No JSON begins like that, so a column that
 * holds JSON or lines of it shows by its first letter which of the two it has. Of characters that JSON need not escape,
 * and without those that texts are joined by.
 */
export const ENCRYPTED_PREFIX = "enc1:";
const ENCRYPTED = /^enc1:([\w-]{6}):([A-Za-z0-9+/]+={0,2})$/;
const HEAD_CHARACTERS = ENCRYPTED_PREFIX.length + 7;
const SALT_BYTES = 6;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** In base64. */
const ENCRYPTED_CHARACTERS_AT_LEAST = Math.ceil((SALT_BYTES + NONCE_BYTES + TAG_BYTES) / 3) * 4;
/**
 * Nonces are random, and one key of AES must not have so many that two are equal (2^32, at 10,000 a second five days). So
 * each process has a key of its own, made of the configured one and a salt, and takes another after so many.
 */
const ENCRYPTED_WITH_ONE_SALT = 2 ** 30;
const DERIVED_AT_MOST = 1_000;
/** Random bytes are drawn for so many nonces at once: each call costs a microsecond. */
const NONCES_DRAWN = 256;

/** Where a text may have been sealed. */
export type Places = readonly [string, ...string[]];

export interface Cipher {
  /** The id of the key that seals. */
  readonly keyId: string;
  readonly keyIds: readonly string[];
  /** The keys of metadata whose values are sealed. */
  readonly metadataKeys: ReadonlySet<string>;
  /**
   * `place`: what the text is of (a row and a column). It opens only there, so that one who can write to the database
   * can't give one row the content of another.
   */
  encrypt(text: string, place: string): string;
  /** Equal texts in the same place are sealed to equal ones: where the database compares what it has with what it is given. */
  encryptAlike(text: string, place: string): string;
  /**
   * A text that was not sealed comes back as it is; it may have been sealed in any of these places. Throws an `EncryptionError`
   * if the key is missing, or the text was changed.
   */
  decrypt(text: string, ...places: Places): string;
  /** True if one of the keys has sealed it, as it seems. */
  canDecrypt(text: string): boolean;
  /** True if a key that is not among these has sealed it, as it seems: it is too long to be none. */
  lacksKeyOf(text: string): boolean;
  /** Undefined if none of the keys has sealed it in one of these places, whatever it looks like. */
  decryptIfEncrypted(text: string, ...places: Places): string | undefined;
  /** Calls back with the error if `decryptIfEncrypted` comes upon what seems to be sealed with one of the keys and is not, once. */
  onDamaged(listener: (error: EncryptionError) => void): void;
  /** A key for equal texts that says nothing of them: 32 hexadecimal digits. */
  digest(text: string): string;
  /** What `digest` answers, and answered while each other key was the newest. */
  digests(text: string): string[];
}

/** Whether a text of a column that holds JSON or lines of JSON is sealed. */
export const isEncrypted = (text: string): boolean => text.startsWith(ENCRYPTED_PREFIX);

/** The first key seals; all of them open. */
export const createCipher = (
  keys: readonly [EncryptionKey, ...EncryptionKey[]],
  metadataKeys: Iterable<string> = [],
): Cipher => {
  const ring = new Map(keys.map((key) => [key.id, key]));
  const [current] = keys;
  const derived = new Map<string, KeyObject>();
  let salt = randomBytes(SALT_BYTES);
  let encryptedWithSalt = 0;
  let nonces = Buffer.alloc(0);
  let nonceAt = 0;

  const derive = (key: EncryptionKey, salt: Buffer): KeyObject => {
    const name = key.id + salt.toString("latin1");
    let found = derived.get(name);
    if (found === undefined) {
      if (derived.size >= DERIVED_AT_MOST) derived.clear();
      found = createSecretKey(createHmac("sha256", key.aes).update(salt).digest());
      derived.set(name, found);
    }
    return found;
  };
  const digestBy = (key: EncryptionKey, text: string): string =>
    createHmac("sha256", key.digesting).update("digest").update(text).digest("hex").slice(0, 32);
  let aesKey = derive(current, salt);
  const nextNonce = (): Buffer => {
    if (nonceAt === nonces.length) {
      nonces = randomBytes(NONCES_DRAWN * NONCE_BYTES);
      nonceAt = 0;
    }
    return nonces.subarray(nonceAt, (nonceAt += NONCE_BYTES));
  };
  const encryptWith = (text: string, place: string, key: KeyObject, salt: Buffer, nonce: Buffer): string => {
    const cipher = createCipheriv("aes-256-gcm", key, nonce);
    cipher.setAAD(Buffer.from(place));
    const encrypted = Buffer.concat([
      salt,
      nonce,
      cipher.update(text, "utf8"),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    return `${ENCRYPTED_PREFIX}${current.id}:${encrypted.toString("base64")}`;
  };

  /** Throws what Node throws if it was not sealed so. */
  const decryptWith = (key: EncryptionKey, encrypted: Buffer, place: string): string => {
    const salt = encrypted.subarray(0, SALT_BYTES);
    const nonce = encrypted.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
    const decipher = createDecipheriv("aes-256-gcm", derive(key, salt), nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(place));
    decipher.setAuthTag(encrypted.subarray(encrypted.length - TAG_BYTES));
    const decrypted = decipher.update(
      encrypted.subarray(SALT_BYTES + NONCE_BYTES, encrypted.length - TAG_BYTES),
    );
    return Buffer.concat([decrypted, decipher.final()]).toString("utf8");
  };

  let logDamaged: ((error: EncryptionError) => void) | undefined;

  const cipher: Cipher = {
    keyId: current.id,
    keyIds: [...ring.keys()],
    metadataKeys: new Set(metadataKeys),
    encrypt(text, place) {
      if (++encryptedWithSalt > ENCRYPTED_WITH_ONE_SALT) {
        salt = randomBytes(SALT_BYTES);
        aesKey = derive(current, salt);
        encryptedWithSalt = 1;
      }
      return encryptWith(text, place, aesKey, salt, nextNonce());
    },
    encryptAlike(text, place) {
      const parts = JSON.stringify([place, text]);
      const hash = createHmac("sha256", current.digesting).update("alike").update(parts).digest();
      const alikeSalt = hash.subarray(0, SALT_BYTES);
      const nonce = hash.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
      return encryptWith(text, place, derive(current, alikeSalt), alikeSalt, nonce);
    },
    decrypt(text, ...places) {
      if (!isEncrypted(text)) return text;
      const id = text.slice(ENCRYPTED_PREFIX.length, HEAD_CHARACTERS - 1);
      const key = ring.get(id);
      if (key === undefined) throw missingKey(id);
      const encrypted = Buffer.from(text.slice(HEAD_CHARACTERS), "base64");
      let cause: unknown;
      for (const place of places) {
        try {
          return decryptWith(key, encrypted, place);
        } catch (error) {
          cause = error;
        }
      }
      throw new EncryptionError(
        `What is stored was changed, or stands where it was not stored (${kindOf(places[0])}).`,
        { cause },
      );
    },
    canDecrypt(text) {
      const id = ENCRYPTED.exec(text)?.[1];
      return id !== undefined && ring.has(id);
    },
    lacksKeyOf(text) {
      const [, id, encrypted = ""] = ENCRYPTED.exec(text) ?? [];
      return id !== undefined && !ring.has(id) && encrypted.length >= ENCRYPTED_CHARACTERS_AT_LEAST;
    },
    decryptIfEncrypted(text, ...places) {
      if (!cipher.canDecrypt(text)) return undefined;
      try {
        return cipher.decrypt(text, ...places);
      } catch (error) {
        if (!(error instanceof EncryptionError)) throw error;
        logDamaged?.(error);
        logDamaged = undefined;
        return undefined;
      }
    },
    onDamaged(listener) {
      logDamaged = listener;
    },
    digest: (text) => digestBy(current, text),
    digests: (text) => keys.map((key) => digestBy(key, text)),
  };
  return cipher;
};

/** The beginning of a place says what it is, the rest which one. */
const kindOf = (place: string): string => place.split(" ", 1)[0] ?? "";

/** A text from the database as it was before it was sealed, where the server may have no keys. */
export const openText = (cipher: Cipher | undefined, text: string, place: string): string => {
  if (cipher !== undefined) return cipher.decrypt(text, place);
  if (isEncrypted(text)) throw missingKey(text.slice(ENCRYPTED_PREFIX.length, HEAD_CHARACTERS - 1));
  return text;
};

const missingKey = (given: string): EncryptionError => {
  const id = given.replace(/[^\w-]/g, "");
  return new EncryptionError(
    `What is stored is encrypted with the key '${id}', which this server was not given: set it in LANGGRAPH_AES_KEY.`,
    { missingKeyId: id },
  );
};
