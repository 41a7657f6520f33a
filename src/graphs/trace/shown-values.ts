import { inspect } from "node:util";

const CHARACTERS_AT_MOST = 2_000;
/** A value that needs more is not serialized to its end. */
const PARTS_AT_MOST = 500;
const TOO_LARGE = Symbol("too large");

const cut = (text: string): string =>
  text.length > CHARACTERS_AT_MOST ? `${text.slice(0, CHARACTERS_AT_MOST)}…` : text;

const boundedJson = (value: unknown): string | undefined => {
  let parts = 0;
  let characters = 0;
  return JSON.stringify(value, (_key, part: unknown) => {
    parts += 1;
    if (typeof part === "string") characters += part.length;
    if (parts > PARTS_AT_MOST || characters > CHARACTERS_AT_MOST) throw TOO_LARGE;
    return part;
  });
};

/** Any value as text of at most 2,001 characters: JSON if it is short, otherwise its beginning for people. */
export const shownValue = (value: unknown): string => {
  if (typeof value === "string") return cut(value);
  try {
    return cut(boundedJson(value) ?? String(value));
  } catch {
    // Values of a graph may throw when read.
    try {
      return cut(
        inspect(value, { customInspect: false, depth: 3, maxArrayLength: 20, maxStringLength: 500 }),
      );
    } catch {
      return "(can't be shown)";
    }
  }
};
