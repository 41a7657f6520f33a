import { EncryptionError } from "../../platform/domain/errors.ts";
import { isEncrypted, ENCRYPTED_PREFIX, type Cipher, type Places } from "../../platform/encryption/cipher.ts";

/** Where values of JSON columns were sealed before they were bound to their rows: the same place for all of them. */
const UNBOUND_PLACE = "json";
const isOfJson = ([place]: Places): boolean => place.startsWith("json ");

/** The result of some work, with the keys that decrypted something for it. */
interface KeyUse<Result> {
  result: Result;
  /** The id of a key for each text that was decrypted. */
  openedWith: string[];
  /** How many texts were encrypted. */
  encrypted: number;
  /** How many texts were bound to no row. */
  unbound: number;
}

/**
 * Records which keys of a cipher some work needs. Callers may store texts that only look encrypted, so no search of the
 * stored text can tell.
 */
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
  return {
    /** Not for asynchronous work. */
    during<Result>(work: (cipher: Cipher) => Result): KeyUse<Result> {
      openedWith = [];
      encrypted = 0;
      unbound = 0;
      return { result: work(recording), openedWith, encrypted, unbound };
    },
  };
};
