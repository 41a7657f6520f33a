import { isSealed, SEALED_PREFIX, type Cipher } from "../encryption/cipher.ts";

/** The result of some work, with the keys that decrypted something for it. */
interface KeyUse<Result> {
  result: Result;
  /** The id of a key for each text that was decrypted. */
  openedWith: string[];
  /** How many texts were encrypted. */
  sealed: number;
}

/**
 * Records which keys of a cipher some work needs. Callers may store texts that only look encrypted, so no search of the
 * stored text can tell.
 */
export const createKeyUse = (cipher: Cipher) => {
  let openedWith: string[] = [];
  let sealed = 0;
  const recordOpened = (text: string): void =>
    void openedWith.push(text.slice(SEALED_PREFIX.length, text.indexOf(":", SEALED_PREFIX.length)));
  const recording: Cipher = {
    ...cipher,
    seal(text, place) {
      sealed += 1;
      return cipher.seal(text, place);
    },
    sealAlike(text, place, among) {
      sealed += 1;
      return cipher.sealAlike(text, place, among);
    },
    open(text, place) {
      const opened = cipher.open(text, place);
      if (isSealed(text)) recordOpened(text);
      return opened;
    },
    openIfSealed(text, place) {
      const opened = cipher.openIfSealed(text, place);
      if (opened !== undefined) recordOpened(text);
      return opened;
    },
  };
  return {
    /** Not for asynchronous work. */
    during<Result>(work: (cipher: Cipher) => Result): KeyUse<Result> {
      openedWith = [];
      sealed = 0;
      return { result: work(recording), openedWith, sealed };
    },
  };
};
