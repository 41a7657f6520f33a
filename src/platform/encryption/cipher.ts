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
export const SEALED_PREFIX = "enc1:";
const SEALED = /^enc1:([\w-]{6}):([A-Za-z0-9+/]+={0,2})$/;
const HEAD_CHARACTERS = SEALED_PREFIX.length + 7;
const SALT_BYTES = 6;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** In base64. */
const SEALED_CHARACTERS_AT_LEAST = Math.ceil((SALT_BYTES + NONCE_BYTES + TAG_BYTES) / 3) * 4;
/**
 * Nonces are random, and one key of AES must not have so many that two are equal (2^32, at 10,000 a second five days). So
 * each process has a key of its own, made of the configured one and a salt, and takes another after so many.
 */
const SEALED_WITH_ONE_SALT = 2 ** 30;
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
  seal(text: string, place: string): string;
  /** Equal texts in the same place are sealed to equal ones: where the database compares what it has with what it is given. */
  sealAlike(text: string, place: string): string;
  /**
   * A text that was not sealed comes back as it is; it may have been sealed in any of these places. Throws an `EncryptionError`
   * if the key is missing, or the text was changed.
   */
  open(text: string, ...places: Places): string;
  /** True if one of the keys has sealed it, as it seems. */
  canOpen(text: string): boolean;
  /** True if a key that is not among these has sealed it, as it seems: it is too long to be none. */
  lacksKeyOf(text: string): boolean;
  /** Undefined if none of the keys has sealed it in one of these places, whatever it looks like. */
  openIfSealed(text: string, ...places: Places): string | undefined;
  /** Calls back with the error if `openIfSealed` comes upon what seems to be sealed with one of the keys and is not, once. */
  onDamaged(listener: (error: EncryptionError) => void): void;
  /** A key for equal texts that says nothing of them: 32 hexadecimal digits. */
  digest(text: string): string;
  /** What `digest` answers, and answered while each other key was the newest. */
  digests(text: string): string[];
}

/** Whether a text of a column that holds JSON or lines of JSON is sealed. */
export const isSealed = (text: string): boolean => text.startsWith(SEALED_PREFIX);

/** The first key seals; all of them open. */
export const createCipher = (
  keys: readonly [EncryptionKey, ...EncryptionKey[]],
  metadataKeys: Iterable<string> = [],
): Cipher => {
  const ring = new Map(keys.map((key) => [key.id, key]));
  const [current] = keys;
  const derived = new Map<string, KeyObject>();
  let salt = randomBytes(SALT_BYTES);
  let sealedWithSalt = 0;
  let nonces = Buffer.alloc(0);
  let nonceAt = 0;

  const derive = (key: EncryptionKey, salt: Buffer): KeyObject => {
    const name = key.id + salt.toString("latin1");
    let found = derived.get(name);
    if (found === undefined) {
      if (derived.size >= DERIVED_AT_MOST) derived.clear();
      found = createSecretKey(createHmac("sha256", key.sealing).update(salt).digest());
      derived.set(name, found);
    }
    return found;
  };
  const digestBy = (key: EncryptionKey, text: string): string =>
    createHmac("sha256", key.digesting).update("digest").update(text).digest("hex").slice(0, 32);
  let sealingKey = derive(current, salt);
  const nextNonce = (): Buffer => {
    if (nonceAt === nonces.length) {
      nonces = randomBytes(NONCES_DRAWN * NONCE_BYTES);
      nonceAt = 0;
    }
    return nonces.subarray(nonceAt, (nonceAt += NONCE_BYTES));
  };
  const sealWith = (text: string, place: string, key: KeyObject, salt: Buffer, nonce: Buffer): string => {
    const cipher = createCipheriv("aes-256-gcm", key, nonce);
    cipher.setAAD(Buffer.from(place));
    const sealed = Buffer.concat([
      salt,
      nonce,
      cipher.update(text, "utf8"),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    return `${SEALED_PREFIX}${current.id}:${sealed.toString("base64")}`;
  };

  /** Throws what Node throws if it was not sealed so. */
  const openWith = (key: EncryptionKey, sealed: Buffer, place: string): string => {
    const salt = sealed.subarray(0, SALT_BYTES);
    const nonce = sealed.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
    const decipher = createDecipheriv("aes-256-gcm", derive(key, salt), nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(place));
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
    const opened = decipher.update(sealed.subarray(SALT_BYTES + NONCE_BYTES, sealed.length - TAG_BYTES));
    return Buffer.concat([opened, decipher.final()]).toString("utf8");
  };

  let tellDamaged: ((error: EncryptionError) => void) | undefined;

  const cipher: Cipher = {
    keyId: current.id,
    keyIds: [...ring.keys()],
    metadataKeys: new Set(metadataKeys),
    seal(text, place) {
      if (++sealedWithSalt > SEALED_WITH_ONE_SALT) {
        salt = randomBytes(SALT_BYTES);
        sealingKey = derive(current, salt);
        sealedWithSalt = 1;
      }
      return sealWith(text, place, sealingKey, salt, nextNonce());
    },
    sealAlike(text, place) {
      const parts = JSON.stringify([place, text]);
      const hash = createHmac("sha256", current.digesting).update("alike").update(parts).digest();
      const alikeSalt = hash.subarray(0, SALT_BYTES);
      const nonce = hash.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
      return sealWith(text, place, derive(current, alikeSalt), alikeSalt, nonce);
    },
    open(text, ...places) {
      if (!isSealed(text)) return text;
      const id = text.slice(SEALED_PREFIX.length, HEAD_CHARACTERS - 1);
      const key = ring.get(id);
      if (key === undefined) throw missingKey(id);
      const sealed = Buffer.from(text.slice(HEAD_CHARACTERS), "base64");
      let cause: unknown;
      for (const place of places) {
        try {
          return openWith(key, sealed, place);
        } catch (error) {
          cause = error;
        }
      }
      throw new EncryptionError(
        `What is stored was changed, or stands where it was not stored (${kindOf(places[0])}).`,
        { cause },
      );
    },
    canOpen(text) {
      const id = SEALED.exec(text)?.[1];
      return id !== undefined && ring.has(id);
    },
    lacksKeyOf(text) {
      const [, id, sealed = ""] = SEALED.exec(text) ?? [];
      return id !== undefined && !ring.has(id) && sealed.length >= SEALED_CHARACTERS_AT_LEAST;
    },
    openIfSealed(text, ...places) {
      if (!cipher.canOpen(text)) return undefined;
      try {
        return cipher.open(text, ...places);
      } catch (error) {
        if (!(error instanceof EncryptionError)) throw error;
        tellDamaged?.(error);
        tellDamaged = undefined;
        return undefined;
      }
    },
    onDamaged(listener) {
      tellDamaged = listener;
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
  if (cipher !== undefined) return cipher.open(text, place);
  if (isSealed(text)) throw missingKey(text.slice(SEALED_PREFIX.length, HEAD_CHARACTERS - 1));
  return text;
};

const missingKey = (given: string): EncryptionError => {
  const id = given.replace(/[^\w-]/g, "");
  return new EncryptionError(
    `What is stored is encrypted with the key '${id}', which this server was not given: set it in LANGGRAPH_AES_KEY.`,
    { missingKeyId: id },
  );
};
