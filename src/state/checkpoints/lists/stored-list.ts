import { equalsTree, equalsTreeAtTop } from "../../values/comparing.ts";
import type { Segment } from "./segments.ts";

/** A stored list. All references share one object, so that a move of its elements corrects it in one place. */
export interface ListReference {
  segments: Segment[];
}

/** A stored list with its live elements and, aligned with them, their stored trees. */
export interface LiveList {
  reference: ListReference;
  elements: readonly unknown[];
  trees: readonly unknown[];
}

/** Elements to insert, at consecutive positions of one list. */
export interface NewElements {
  list: number;
  position: number;
  texts: string[];
  trees: unknown[];
}

/**
 * Elements at a list's end that are compared in full for changes in place; older ones only at the top. A message takes
 * 0.3 µs in full, 0.03 at the top.
 */
export const FULLY_COMPARED = 64;

/** How many elements at the start are still the stored ones. Allocates nothing, because most lists only grow. */
export const unchangedPrefix = (array: readonly unknown[], { elements, trees }: LiveList): number => {
  const end = Math.min(array.length, elements.length);
  let index = 0;
  while (index < end && Object.is(array[index], elements[index]) && isUnchanged(array, index, trees[index]))
    index += 1;
  return index;
};

/** Whether a live element still equals its stored tree. */
export const isUnchanged = (array: readonly unknown[], index: number, tree: unknown): boolean =>
  index >= array.length - FULLY_COMPARED
    ? equalsTree(array[index], tree)
    : equalsTreeAtTop(array[index], tree);

/** Whether a live list has this very object at this index. */
export const isSameAt = (list: LiveList, index: number, element: unknown): boolean =>
  index >= 0 && index < list.elements.length && Object.is(list.elements[index], element);
