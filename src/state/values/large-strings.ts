/**
 * A stored text may refer to other texts of its thread, its contents (checkpoints/contents.ts), between two control
 * characters, which JSON never contains. A large string is always such a content: it is stored once in a thread, however
 * many messages, checkpoints and events repeat it.
 */

/** Of the JSON literal, with its quotes. A smaller string costs less as a part of its text. */
export const LARGE_STRING_CHARACTERS = 32_768;

/** Begins and ends a reference. */
const REFERENCE_MARK = "\u0001";
const REFERENCE = /\u0001([^\u0001]*)\u0001/g; // eslint-disable-line no-control-regex
const BACKSLASH = 92;

export const referenceTo = (hash: string): string => `${REFERENCE_MARK}${hash}${REFERENCE_MARK}`;

/**
 * Replaces the large strings of a JSON text by references. `keep` returns the hash of a literal, or undefined if the
 * literal has to stay.
 */
export const takeOutLargeStrings = (
  text: string,
  keep: (literal: string) => string | undefined,
  charactersAtLeast = LARGE_STRING_CHARACTERS,
): string => {
  if (text.length < charactersAtLeast) return text;
  let taken = "";
  let copied = 0;
  for (let start = text.indexOf('"'); start !== -1;) {
    const end = endOfString(text, start);
    if (end - start >= charactersAtLeast) {
      const literal = text.slice(start, end);
      const hash = keep(literal);
      if (hash !== undefined) {
        taken += `${text.slice(copied, start)}${referenceTo(hash)}`;
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

export const hasReferences = (text: string): boolean => text.includes(REFERENCE_MARK);

/** The hashes in their order, with repetitions. */
export const referencesIn = (text: string): string[] =>
  hasReferences(text) ? Array.from(text.matchAll(REFERENCE), ([, hash = ""]) => hash) : [];

/** The text with what `textOf` returns in place of each reference. */
export const withoutReferences = (text: string, textOf: (hash: string) => string): string =>
  hasReferences(text) ? text.replace(REFERENCE, (_, hash: string) => textOf(hash)) : text;
