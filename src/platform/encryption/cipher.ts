import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  type KeyObject,
} from "node:crypto";
import { EncryptionError } from "../domain/errors.ts";

/** Each use has its own key, so that no key reveals another. */
interface EncryptionKey {
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

/**
 * `enc1:`, key id, colon, and base64 of salt, nonce, ciphertext and tag. No JSON begins like this, and separators never
 * occur in it.
 */
export const ENCRYPTED_PREFIX = "enc1:";
const ENCRYPTED = /^enc1:([\w-]{6}):([A-Za-z0-9+/]+={0,2})$/;
const HEAD_CHARACTERS = ENCRYPTED_PREFIX.length + 7;
const SALT_BYTES = 6;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ENCRYPTED_CHARACTERS_AT_LEAST = Math.ceil((SALT_BYTES + NONCE_BYTES + TAG_BYTES) / 3) * 4;
/**
 * Random nonces of one AES key may collide after 2^32 texts: five days at 10,000 a second. Therefore each process
 * derives a key with a salt, and changes the salt after this many texts.
 */
const ENCRYPTED_WITH_ONE_SALT = 2 ** 30;
const DERIVED_AT_MOST = 1_000;
/** Each draw of random bytes costs a microsecond. */
const NONCES_DRAWN = 256;

export type Places = readonly [string, ...string[]];

export const isEncrypted = (text: string): boolean => text.startsWith(ENCRYPTED_PREFIX);

/** Counts the calls of a cipher. Texts can't be counted: a caller may store a text that only looks encrypted. */
export interface CipherUse {
  encrypted: number;
  /** The key of each decrypted text. */
  opened: string[];
}

/** The first key encrypts; all keys decrypt. */
export const createCipher = (
  keys: readonly [EncryptionKey, ...EncryptionKey[]],
  metadataKeys: Iterable<string> = [],
) => {
  const ring = new Map(keys.map((key) => [key.id, key]));
  const [current] = keys;
  const derived = new Map<string, KeyObject>();
  let salt = randomBytes(SALT_BYTES);
  let encryptedWithSalt = 0;
  let nonces = Buffer.alloc(0);
  let nonceAt = 0;
  let use: CipherUse | undefined;

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
    if (use !== undefined) use.encrypted += 1;
    const encrypted = Buffer.concat([
      salt,
      nonce,
      cipher.update(text, "utf8"),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    return `${ENCRYPTED_PREFIX}${current.id}:${encrypted.toString("base64")}`;
  };

  /** Throws Node's error if the key or the place is wrong. */
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

  const cipher = {
    keyId: current.id,
    keyIds: [...ring.keys()] as readonly string[],
    metadataKeys: new Set(metadataKeys) as ReadonlySet<string>,
    /**
     * `place` names the row and the column. The text decrypts only there, so a database writer can't move content
     * between rows.
     */
    encrypt(text: string, place: string): string {
      if (++encryptedWithSalt > ENCRYPTED_WITH_ONE_SALT) {
        salt = randomBytes(SALT_BYTES);
        aesKey = derive(current, salt);
        encryptedWithSalt = 1;
      }
      return encryptWith(text, place, aesKey, salt, nextNonce());
    },
    /** Equal texts of a place get equal ciphertexts, which the database can compare. */
    encryptAlike(text: string, place: string): string {
      const parts = JSON.stringify([place, text]);
      const hash = createHmac("sha256", current.digesting).update("alike").update(parts).digest();
      const alikeSalt = hash.subarray(0, SALT_BYTES);
      const nonce = hash.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
      return encryptWith(text, place, derive(current, alikeSalt), alikeSalt, nonce);
    },
    /**
     * Returns an unencrypted text as it is. Throws an `EncryptionError` if the key is missing or the text was changed.
     */
    decrypt(text: string, ...places: Places): string {
      if (!isEncrypted(text)) return text;
      const id = text.slice(ENCRYPTED_PREFIX.length, HEAD_CHARACTERS - 1);
      const key = ring.get(id);
      if (key === undefined) throw missingKey(id);
      const encrypted = Buffer.from(text.slice(HEAD_CHARACTERS), "base64");
      let cause: unknown;
      for (const place of places) {
        try {
          const decrypted = decryptWith(key, encrypted, place);
          use?.opened.push(id);
          return decrypted;
        } catch (error) {
          cause = error;
        }
      }
      throw new EncryptionError(`A stored value was changed or moved (${kindOf(places[0])}).`, { cause });
    },
    /** Checks only the form and the key id. */
    canDecrypt(text: string): boolean {
      const id = ENCRYPTED.exec(text)?.[1];
      return id !== undefined && ring.has(id);
    },
    /** Checks only the form, the key id and the length. */
    lacksKeyOf(text: string): boolean {
      const [, id, encrypted = ""] = ENCRYPTED.exec(text) ?? [];
      return id !== undefined && !ring.has(id) && encrypted.length >= ENCRYPTED_CHARACTERS_AT_LEAST;
    },
    /** Undefined if no key encrypted the text in one of these places. */
    decryptIfEncrypted(text: string, ...places: Places): string | undefined {
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
    /** Records what the synchronous `work` does. */
    recording<Result>(during: CipherUse, work: () => Result): Result {
      use = during;
      try {
        return work();
      } finally {
        use = undefined;
      }
    },
    /** Called at most once: when `decryptIfEncrypted` fails for a text with a known key id. */
    onDamaged(listener: (error: EncryptionError) => void): void {
      logDamaged = listener;
    },
    /** 32 hexadecimal digits. Reveals nothing but equality. */
    digest: (text: string): string => digestBy(current, text),
    /** One digest for each key. */
    digests: (text: string): string[] => keys.map((key) => digestBy(key, text)),
  };
  return cipher;
};

export type Cipher = ReturnType<typeof createCipher>;

const kindOf = (place: string): string => place.split(" ", 1)[0] ?? "";

/** Needs no cipher for an unencrypted text. */
export const openText = (cipher: Cipher | undefined, text: string, place: string): string => {
  if (cipher !== undefined) return cipher.decrypt(text, place);
  if (isEncrypted(text)) throw missingKey(text.slice(ENCRYPTED_PREFIX.length, HEAD_CHARACTERS - 1));
  return text;
};

const missingKey = (given: string): EncryptionError => {
  const id = given.replace(/[^\w-]/g, "");
  return new EncryptionError(
    `A stored value is encrypted with the key '${id}', which this server does not have: set it in LANGGRAPH_AES_KEY.`,
    { missingKeyId: id },
  );
};

/** Can be sent to graph processes. */
export interface EncryptionSetup {
  /** Base64; the first key encrypts. */
  keys: readonly string[];
  metadataKeys: readonly string[];
}

/** Undefined without keys. */
export const openCipher = ({ keys, metadataKeys }: EncryptionSetup): Cipher | undefined => {
  const [first, ...others] = keys.map((key) => encryptionKey(Buffer.from(key, "base64")));
  return first === undefined ? undefined : createCipher([first, ...others], metadataKeys);
};

/** Has a new random key, so it can't decrypt stored texts. */
export const newCipher = (): Cipher => createCipher([encryptionKey(randomBytes(32))]);
