import { EncryptionError } from "../../platform/domain/errors.ts";
import { createEncryption, type Encryption } from "../../platform/encryption/encryption.ts";
import { isEncrypted, ENCRYPTED_PREFIX, type Cipher, type Places } from "../../platform/encryption/cipher.ts";

/** The common place of JSON values before values were bound to rows. */
const UNBOUND_PLACE = "json";
const isOfJson = ([place]: Places): boolean => place.startsWith("json ");

interface KeyUse<Result> {
  result: Result;
  /** A key id per decrypted text. */
  openedWith: string[];
  /** Number of encrypted texts. */
  encrypted: number;
  unbound: number;
}

/** Callers may store text that only looks encrypted, so this records which keys are used. */
export const createKeyUse = (cipher: Cipher, { acceptsUnbound }: { acceptsUnbound: boolean }) => {
  let openedWith: string[] = [];
  let unbound = 0;
  let encrypted = 0;
  const recordOpened = (text: string): void =>
    void openedWith.push(text.slice(ENCRYPTED_PREFIX.length, text.indexOf(":", ENCRYPTED_PREFIX.length)));
  const openAnywhere = (text: string, places: Places): string => {
    try {
      return cipher.decrypt(text, ...places);
    } catch (error) {
      if (!acceptsUnbound || !(error instanceof EncryptionError) || !isOfJson(places)) throw error;
      const opened = cipher.decrypt(text, UNBOUND_PLACE);
      unbound += 1;
      return opened;
    }
  };
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
      const opened = openAnywhere(text, places);
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
      unbound = 0;
      return { result: work(encryption), openedWith, encrypted, unbound };
    },
  };
};
