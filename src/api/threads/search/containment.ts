import { isObject } from "../../../platform/lib/json.ts";

/** Tests whether a value contains the part, as `jsonb @>` does. */

export type Matcher = (value: unknown) => boolean;

/** Receives the number of the coming comparisons; throws if there are too many. */
export type Spend = (comparisons: number) => void;

/** Prepares the part once for all values. Each nested element of a list needs its own pass, which `spend` bounds. */
export const matcherOf = (part: unknown, spend: Spend): Matcher => {
  if (Array.isArray(part)) return listMatcher(part, spend);
  if (!isObject(part)) return (value) => value === part;
  const fields = Object.entries(part).map(([key, item]) => [key, matcherOf(item, spend)] as const);
  return (value) =>
    isObject(value) && fields.every(([key, matches]) => Object.hasOwn(value, key) && matches(value[key]));
};

const listMatcher = (part: readonly unknown[], spend: Spend): Matcher => {
  const plain = new Set(part.filter((item) => typeof item !== "object" || item === null));
  const nested = part
    .filter((item) => typeof item === "object" && item !== null)
    .map((item) => matcherOf(item, spend));
  return (value) => {
    if (!Array.isArray(value)) return false;
    spend(value.length * (1 + nested.length));
    return containsAll(value, plain) && nested.every((matches) => value.some(matches));
  };
};

const containsAll = (list: readonly unknown[], wanted: ReadonlySet<unknown>): boolean => {
  if (wanted.size === 0) return true;
  const missing = new Set(wanted);
  for (const item of list) if (missing.delete(item) && missing.size === 0) return true;
  return false;
};
