import { isObject } from "../is-object.ts";
import { create, type Delta } from "jsondiffpatch";

export interface Change {
  kind: "added" | "removed" | "changed" | "moved";
  /** Keys and list indexes of the second value; for a removed value of the first. */
  path: readonly string[];
  before?: unknown;
  after?: unknown;
}

/** Comparing lists by content takes time per pair; beyond this many pairs they are compared by index. */
const PAIRS_AT_MOST = 250_000;

const isList = (value: unknown): value is unknown[] => Array.isArray(value);
const isSame = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);

/** Ignores the common start and end of the lists. */
const hasTooManyPairs = (before: unknown[], after: unknown[]): boolean => {
  if (before.length * after.length <= PAIRS_AT_MOST) return false;
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isSame(before[start], after[start])) start += 1;
  let end = 0;
  while (end < shorter - start && isSame(before.at(-1 - end), after.at(-1 - end))) end += 1;
  return (before.length - start - end) * (after.length - start - end) > PAIRS_AT_MOST;
};

/** Converts lists with too many pairs to objects, which are compared by index. */
const comparable = (before: unknown, after: unknown): [unknown, unknown] => {
  if (isList(before) && isList(after)) {
    if (hasTooManyPairs(before, after)) return [{ ...before }, { ...after }];
    return [before, after];
  }
  if (!isObject(before) || !isObject(after)) return [before, after];
  const pairs = Object.keys(before)
    .filter((key) => Object.hasOwn(after, key))
    .map((key): [string, [unknown, unknown]] => [key, comparable(before[key], after[key])]);
  return [
    { ...before, ...Object.fromEntries(pairs.map(([key, [first]]) => [key, first])) },
    { ...after, ...Object.fromEntries(pairs.map(([key, [, second]]) => [key, second])) },
  ];
};

/** A changed message keeps its id. */
const hashOf = (item: object): string => {
  const { id } = item as { id?: unknown };
  return typeof id === "string" ? `id ${id}` : JSON.stringify(item);
};

const differ = create({ objectHash: hashOf, cloneDiffValues: false });

const changeOf = (delta: readonly unknown[], path: readonly string[]): Change => {
  const [first, second, kind] = delta;
  if (delta.length === 1) return { kind: "added", path, after: first };
  if (delta.length === 2) return { kind: "changed", path, before: first, after: second };
  if (kind === 3) return { kind: "moved", path, before: Number(path.at(-1)), after: second };
  return { kind: "removed", path, before: first };
};

const collect = (delta: Delta, path: readonly string[], changes: Change[]): void => {
  if (delta === undefined) return;
  if (isList(delta)) {
    changes.push(changeOf(delta, path));
    return;
  }
  const isOfList = (delta as { _t?: unknown })._t === "a";
  for (const [key, child] of Object.entries(delta as Record<string, Delta>)) {
    if (isOfList && key === "_t") continue;
    // `_3` is an index of the first list, `3` of the second.
    collect(child, [...path, isOfList && key.startsWith("_") ? key.slice(1) : key], changes);
  }
};

/** Of JSON values. */
export const changesBetween = (before: unknown, after: unknown): Change[] => {
  const changes: Change[] = [];
  collect(differ.diff(...comparable(before, after)), [], changes);
  return changes;
};

/** Splits off the common start and end. */
export const partsOfTexts = (before: string, after: string) => {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return {
    start: before.slice(0, start),
    removed: before.slice(start, before.length - end),
    added: after.slice(start, after.length - end),
    end: end === 0 ? "" : before.slice(-end),
  };
};
