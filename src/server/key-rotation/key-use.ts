import { EncryptionError } from "../../platform/domain/errors.ts";
import { isSealed, SEALED_PREFIX, type Cipher, type Places } from "../../platform/encryption/cipher.ts";

/** Where values of JSON columns were sealed before they were bound to their rows: the same place for all of them. */
const UNBOUND_PLACE = "json";
const isOfJson = ([place]: Places): boolean => place.startsWith("json ");

/** The result of some work, with the keys that decrypted something for it. */
interface KeyUse<Result> {
  result: Result;
  /** The id of a key for each text that was decrypted. */
  openedWith: string[];
  /** How many texts were encrypted. */
  sealed: number;
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
  let sealed = 0;
  const recordOpened = (text: string): void =>
    void openedWith.push(text.slice(SEALED_PREFIX.length, text.indexOf(":", SEALED_PREFIX.length)));
  const openAnywhere = (text: string, places: Places): string => {
    try {
      return cipher.open(text, ...places);
    } catch (error) {
      if (!acceptsUnbound || !(error instanceof EncryptionError) || !isOfJson(places)) throw error;
      const opened = cipher.open(text, UNBOUND_PLACE);
      unbound += 1;
      return opened;
    }
  };
  const recording: Cipher = {
    ...cipher,
    seal(text, place) {
      sealed += 1;
      return cipher.seal(text, place);
    },
    sealAlike(text, place) {
      sealed += 1;
      return cipher.sealAlike(text, place);
    },
    open(text, ...places) {
      const opened = openAnywhere(text, places);
      if (isSealed(text)) recordOpened(text);
      return opened;
    },
    openIfSealed(text, ...places) {
      if (!cipher.canOpen(text)) return undefined;
      try {
        return recording.open(text, ...places);
      } catch (error) {
        if (!(error instanceof EncryptionError)) throw error;
        return cipher.openIfSealed(text, ...places);
      }
    },
  };
  return {
    /** Not for asynchronous work. */
    during<Result>(work: (cipher: Cipher) => Result): KeyUse<Result> {
      openedWith = [];
      sealed = 0;
      unbound = 0;
      return { result: work(recording), openedWith, sealed, unbound };
    },
  };
};
