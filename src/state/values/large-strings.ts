/**
 * A large string is kept apart from the JSON text that has it: once in a thread, however many messages, checkpoints and
 * events repeat it. The text refers to it between two control characters, which JSON never contains.
 */

/** Of the JSON literal, with its quotes. A smaller string costs less as a part of its text. */
export const LARGE_STRING_CHARACTERS = 32_768;

/** Begins and ends a reference. */
export const REFERENCE_MARK = "\u0001";
const REFERENCE = /\u0001([^,]*),(\d+)\u0001/g; // eslint-disable-line no-control-regex
const BACKSLASH = 92;

export interface LargeStringReference {
  /** See content-hash.ts. */
  hash: string;
  /** Of the literal, in UTF-8. */
  bytes: number;
}

/**
 * Replaces the large strings of a JSON text by references. `keep` returns the hash of a literal, or undefined if the
 * literal has to stay.
 */
export const takeOutLargeStrings = (text: string, keep: (literal: string) => string | undefined): string => {
  if (text.length < LARGE_STRING_CHARACTERS) return text;
  let taken = "";
  let copied = 0;
  for (let start = text.indexOf('"'); start !== -1;) {
    const end = endOfString(text, start);
    if (end - start >= LARGE_STRING_CHARACTERS) {
      const literal = text.slice(start, end);
      const hash = keep(literal);
      if (hash !== undefined) {
        taken += `${text.slice(copied, start)}${REFERENCE_MARK}${hash},${Buffer.byteLength(literal)}${REFERENCE_MARK}`;
        copied = end;
      }
    }
    start = text.indexOf('"', end);
  }
  return copied === 0 ? text : taken + text.slice(copied);
};

const endOfString = (text: string, start: number): number => {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end + 1;
};

const isEscaped = (text: string, index: number): boolean => {
  let first = index;
  while (text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (index - first) % 2 === 1;
};

/** Whether a JSON text has a large string. */
export const containsLargeString = (text: string): boolean => {
  let found = false;
  takeOutLargeStrings(text, () => {
    found = true;
    return undefined;
  });
  return found;
};

/** Whether a text refers to large strings. */
export const hasLargeStrings = (text: string): boolean => text.includes(REFERENCE_MARK);

/** In their order, with repetitions. */
export const largeStringsOf = (text: string): LargeStringReference[] =>
  hasLargeStrings(text)
    ? Array.from(text.matchAll(REFERENCE), ([, hash = "", bytes]) => ({ hash, bytes: Number(bytes) }))
    : [];

/** The number of characters of the whole text, or a little more. */
export const wholeLength = (text: string): number =>
  text.includes(REFERENCE_MARK)
    ? largeStringsOf(text).reduce((sum, { bytes }) => sum + bytes, text.length)
    : text.length;

/** Undefined if a literal is missing: its thread was deleted or pruned meanwhile. */
export const putBackLargeStrings = (
  text: string,
  literals: ReadonlyMap<string, string>,
): string | undefined =>
  largeStringsOf(text).every(({ hash }) => literals.has(hash))
    ? text.replace(REFERENCE, (_, hash: string) => literals.get(hash)!)
    : undefined;
