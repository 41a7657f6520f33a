import { invalid } from "../platform/domain/errors.ts";

/**
 * `JSON.stringify` overflows the stack at about 5,000 levels, and `jsonb` fails at 50,000. The server could store
 * deeper values but never return them.
 */
const NESTING_AT_MOST = 500;

/**
 * Different keys of all objects in a body. Each costs V8 an internal name and a hidden class: 200,000 took a run 1.2 s
 * of CPU, ten repeated keys 0.2 s.
 */
const DIFFERENT_KEYS_AT_MOST = 20_000;
/** A member has at least `"":1,`; a shorter text cannot hold too many keys. */
const CHARACTERS_PER_KEY = 5;

/** 2^53 - 1 has 16 digits. */
const SUSPICIOUS_DIGITS = 16;
/** In characters. */
const NUMBER_AT_MOST = 40;

const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;
const ZERO = 48;
const NINE = 57;
const COLON = 58;
const BACKSLASH = 92;
const OPENING_BRACKET = 91;
const CLOSING_BRACKET = 93;
const OPENING_BRACE = 123;
const CLOSING_BRACE = 125;

export const tooManyElements = (elementsAtMost: number) =>
  invalid(`The body holds more than ${elementsAtMost} elements (items of lists and members of objects).`);

const tooManyKeys = () =>
  invalid(
    `The body holds more than ${DIFFERENT_KEYS_AT_MOST} different keys of objects; send a list of items instead.`,
  );

const endOfString = (text: string, start: number): number => {
  let end = start;
  do {
    end = text.indexOf('"', end + 1);
    if (end === -1) return text.length;
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  } while (end < text.length);
  return end;
};

/** Returns the position after the number, which may be malformed. */
const endOfNumber = (text: string, start: number): number => {
  let end = start + 1;
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    const isDigit = code >= ZERO && code <= NINE;
    // . + - e E
    if (!isDigit && code !== 46 && code !== 43 && code !== MINUS && code !== 101 && code !== 69) break;
  }
  return end;
};

/**
 * Refuses an integer that JavaScript would change: 9007199254740993 becomes 9007199254740992. Integers printed by
 * JavaScript pass at any size.
 */
const assertKept = (number: string): void => {
  if (!/^-?\d+$/.test(number) || String(Number(number)) === number) return;
  // `assertStorable` refuses numbers out of range after parsing.
  if (!Number.isFinite(Number(number))) return;
  throw invalid(
    `The body holds the whole number ${number.slice(0, NUMBER_AT_MOST)}, which can't be kept exactly ` +
      "(2^53 - 1 is the largest that is safe): send it as text.",
  );
};

/**
 * Throws `invalid`, before `JSON.parse` takes 130 to 270 ms for a million levels, or 400 ms and 300 MB for five million
 * elements. Elements are items of lists and members of objects, in the whole text.
 */
export const assertBearable = (text: string, elementsAtMost: number): void => {
  let depth = 0;
  let elements = 0;
  const keys = text.length > DIFFERENT_KEYS_AT_MOST * CHARACTERS_PER_KEY ? new Set<string>() : undefined;
  let keyStart = 0;
  let keyEnd = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      keyStart = index + 1;
      keyEnd = index = endOfString(text, index);
    } else if (code === COLON) {
      if (keys !== undefined && keys.add(text.slice(keyStart, keyEnd)).size > DIFFERENT_KEYS_AT_MOST)
        throw tooManyKeys();
    } else if (code === COMMA || code === OPENING_BRACKET || code === OPENING_BRACE) {
      elements += 1;
      if (elements > elementsAtMost) {
        throw tooManyElements(elementsAtMost);
      }
      if (code === COMMA) continue;
      depth += 1;
      if (depth > NESTING_AT_MOST) throw invalid(`The body is nested deeper than ${NESTING_AT_MOST} levels.`);
    } else if (code === CLOSING_BRACKET || code === CLOSING_BRACE) {
      depth -= 1;
    } else if ((code >= ZERO && code <= NINE) || code === MINUS) {
      const end = endOfNumber(text, index);
      if (end - index >= SUSPICIOUS_DIGITS) assertKept(text.slice(index, end));
      index = end - 1;
    }
  }
};
