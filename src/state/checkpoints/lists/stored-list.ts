/** A list that is stored by difference, and how it is compared with the live one. */

import { equalsTree, equalsTreeAtTop } from "../../values/comparing.ts";
import type { Segment } from "./segments.ts";

/** A stored list. The one object stands for it wherever it is referred to, so that it can be corrected in one place. */
export interface ListReference {
  segments: Segment[];
}

/** A stored list together with its live elements and, aligned with them, their stored trees. */
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
 * How many elements at the end of a list are compared in full for changes in place; older ones at the top only.
 * In full a message takes 0.3 µs, at the top 0.03.
 */
export const FULLY_COMPARED = 64;

/** How many elements at its beginning are still the stored ones. Allocates nothing: most lists only grow. */
export const unchangedPrefix = (array: readonly unknown[], { elements, trees }: LiveList): number => {
  const end = Math.min(array.length, elements.length);
  let index = 0;
  while (index < end && Object.is(array[index], elements[index]) && isUnchanged(array, index, trees[index]))
    index += 1;
  return index;
};

/** Whether an element of a live list is what its stored tree says. */
export const isUnchanged = (array: readonly unknown[], index: number, tree: unknown): boolean =>
  index >= array.length - FULLY_COMPARED
    ? equalsTree(array[index], tree)
    : equalsTreeAtTop(array[index], tree);

/** Whether a live list has this very object at this index. */
export const isSameAt = (list: LiveList, index: number, element: unknown): boolean =>
  index >= 0 && index < list.elements.length && Object.is(list.elements[index], element);
