import type { AssistantVersion } from "@langchain/langgraph-sdk";
import { isObject } from "../parts/is-object.ts";

export interface ComparedField {
  /** E.g. `context › model`. */
  path: string;
  left: { value: unknown } | undefined;
  right: { value: unknown } | undefined;
  difference: "same" | "changed" | "left only" | "right only";
}

/** A deeper value is compared as a whole. */
const LEVELS_AT_MOST = 6;
export const FIELDS_AT_MOST = 300;

const COMPARED = ["name", "description", "graph_id", "context", "config", "metadata"] as const;

const isBranch = (value: unknown): value is object => isObject(value) && Object.keys(value).length > 0;

const collect = (leaves: Map<string, unknown>, path: string, value: unknown, level = 0): void => {
  if (!isBranch(value) || level >= LEVELS_AT_MOST) leaves.set(path, value);
  else
    for (const [key, child] of Object.entries(value)) collect(leaves, `${path} › ${key}`, child, level + 1);
};

const leavesOf = (version: AssistantVersion): Map<string, unknown> => {
  const leaves = new Map<string, unknown>();
  for (const field of COMPARED) {
    const value = version[field];
    if (value !== null && value !== undefined && JSON.stringify(value) !== "{}")
      collect(leaves, field, value);
  }
  return leaves;
};

const differenceOf = ({
  left,
  right,
}: Pick<ComparedField, "left" | "right">): ComparedField["difference"] => {
  if (right === undefined) return "left only";
  if (left === undefined) return "right only";
  return JSON.stringify(left.value) === JSON.stringify(right.value) ? "same" : "changed";
};

/** A list counts as one value. */
export const compare = (left: AssistantVersion, right: AssistantVersion): ComparedField[] => {
  const sides = [leavesOf(left), leavesOf(right)] as const;
  const paths = new Set(sides.flatMap((leaves) => [...leaves.keys()]));
  return [...paths].map((path) => {
    const [one, other] = sides.map((leaves) => (leaves.has(path) ? { value: leaves.get(path) } : undefined));
    const pair = { left: one, right: other };
    return { path, ...pair, difference: differenceOf(pair) };
  });
};
