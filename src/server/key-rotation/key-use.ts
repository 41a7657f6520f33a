import type { Queryable } from "../../platform/database/database.ts";
import { EncryptionError } from "../../platform/domain/errors.ts";
import { createEncryption, type Encryption } from "../../platform/encryption/encryption.ts";
import { isEncrypted, ENCRYPTED_PREFIX, type Cipher } from "../../platform/encryption/cipher.ts";

/** Counts of rows. */
export interface TableCount {
  table: string;
  rows: number;
  /** A row may count under several keys. */
  byKey: Map<string, number>;
  /** Rows with values from before the first key. */
  plain: number;
  reencrypted: number;
  busy: number;
  /** Rows that can't be decrypted although their keys are configured. */
  unreadable: number;
  /** Rows by missing key id. A column with a missing key is never stored. */
  byMissingKey: Map<string, number>;
}

export interface WalkOptions {
  database: Pick<Queryable, "query" | "objects">;
  cipher: Cipher;
  /** Stores re-encrypted values instead of only counting. */
  writes: boolean;
  onProgress?: (count: TableCount) => void;
}

interface KeyUse<Result> {
  result: Result;
  /** A key id per decrypted text. */
  openedWith: string[];
  /** Number of encrypted texts. */
  encrypted: number;
}

/** Callers may store text that only looks encrypted, so this records which keys are used. */
export const createKeyUse = (cipher: Cipher) => {
  let openedWith: string[] = [];
  let encrypted = 0;
  const recordOpened = (text: string): void =>
    void openedWith.push(text.slice(ENCRYPTED_PREFIX.length, text.indexOf(":", ENCRYPTED_PREFIX.length)));
  const recording: Cipher = {
    ...cipher,
    encrypt(text, place) {
      encrypted += 1;
      return cipher.encrypt(text, place);
    },
    encryptAlike(text, place) {
      encrypted += 1;
      return cipher.encryptAlike(text, place);
    },
    decrypt(text, ...places) {
      const opened = cipher.decrypt(text, ...places);
      if (isEncrypted(text)) recordOpened(text);
      return opened;
    },
    decryptIfEncrypted(text, ...places) {
      if (!cipher.canDecrypt(text)) return undefined;
      try {
        return recording.decrypt(text, ...places);
      } catch (error) {
        if (!(error instanceof EncryptionError)) throw error;
        return cipher.decryptIfEncrypted(text, ...places);
      }
    },
  };
  const encryption = createEncryption(recording);
  return {
    keysNamedIn: (text: string): string[] =>
      cipher.keyIds.filter((id) => text.includes(`${ENCRYPTED_PREFIX}${id}:`)),

    /** For synchronous work. */
    during<Result>(work: (encryption: Encryption) => Result): KeyUse<Result> {
      openedWith = [];
      encrypted = 0;
      return { result: work(encryption), openedWith, encrypted };
    },
  };
};
