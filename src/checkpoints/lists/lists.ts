/**
 * How a list is stored by difference.
 *
 * The elements of all lists of a thread stand in rows, keyed by list and position; a stored list is an array of
 * segments of such rows, usually one. A list that grew has the same segment, longer. One that lost or changed an
 * element in the middle has the segments around it. Elements are recognised by identity, so nothing is serialized
 * that was serialized before.
 */

import { randomBytes } from "node:crypto";
import { encode, treeText } from "../../values/encoding.ts";
import { equalsTree, equalsTreeAtTop } from "../../values/comparing.ts";
import { joinPieces, RUN_WORTH_A_SEGMENT, type Piece } from "./pieces.ts";
import { movedSegment, SegmentCursor, type Place, type Segment } from "./segments.ts";

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
/** Runs that wait to be indexed keep their elements from being collected. */
const UNINDEXED_AT_MOST = 64;
/** A list in more pieces than these is stored anew as one. */
const SEGMENTS_AT_MOST = 64;

/** Elements whose places are known but not yet looked up by identity. */
interface UnindexedRun {
  list: number;
  position: number;
  elements: readonly unknown[];
  trees: readonly unknown[];
}

/** What one writer knows of the lists of a thread, and the elements that it has still to insert. */
export class ListBook {
  /** The first free position of each list, as far as known here; the database has the last word. */
  private readonly ends = new Map<number, number>();
  private readonly references = new Set<WeakRef<ListReference>>();
  private places = new WeakMap<object, Place>();
  /** Where this book has put elements itself, with their texts. */
  private newPlaces = new WeakMap<object, { list: number; position: number; text: string }>();
  private unindexed: UnindexedRun[] = [];
  private fresh: NewElements[] = [];

  /** Takes note of a list that was read, so that its elements are recognised wherever they turn up. */
  remember({ reference, elements, trees }: LiveList): void {
    let start = 0;
    for (const { list, from, to, closed } of reference.segments) {
      this.ends.set(list, Math.max(this.ends.get(list) ?? 0, closed ? to + 1 : to));
      const end = start + to - from;
      this.unindexed.push({
        list,
        position: from,
        elements: elements.slice(start, end),
        trees: trees.slice(start, end),
      });
      start = end;
    }
    if (this.unindexed.length > UNINDEXED_AT_MOST) this.index();
    this.references.add(new WeakRef(reference));
  }

  /** True if the object is known as a stored element. */
  knows(element: unknown): boolean {
    return typeof element === "object" && element !== null && this.place(element) !== undefined;
  }

  /** Where an array's elements stand, if this book has put all of them there in this order, and their stored texts. */
  findNew(array: readonly unknown[]): { segment: Segment; texts: string[] } | undefined {
    const texts: string[] = [];
    let segment: Segment | undefined;
    for (const element of array) {
      const place = typeof element === "object" && element !== null ? this.newPlaces.get(element) : undefined;
      if (place === undefined) return undefined;
      const { list, position, text } = place;
      segment ??= { list, from: position, to: position, closed: true };
      if (segment.list !== list || segment.to !== position) return undefined;
      segment.to += 1;
      texts.push(text);
    }
    return segment && { segment, texts };
  }

  /** The elements of all plans since the last call. */
  takeNewElements(): NewElements[] {
    const taken = this.fresh;
    this.fresh = [];
    return taken;
  }

  /**
   * Plans how to store an array, given what is stored of the same list before. `texts` are those of its elements,
   * if they were needed already.
   */
  plan(array: readonly unknown[], before: LiveList | undefined, texts?: readonly string[]): LiveList {
    const prefix = before === undefined ? 0 : unchangedPrefix(array, before);
    if (before !== undefined && prefix === array.length && prefix === before.elements.length) return before;
    const trees = before?.trees.slice(0, prefix) ?? [];
    let pieces = joinPieces(this.findPieces(array, before, prefix, trees));
    if (pieces.length > SEGMENTS_AT_MOST) pieces = [{ known: false, start: 0, end: array.length }];
    const reference = { segments: this.placePieces(pieces, array, trees, texts) };
    this.references.add(new WeakRef(reference));
    return { reference, elements: array.slice(), trees };
  }

  /**
   * Another writer has taken the positions that these elements were to have: moves all that is not yet stored to
   * lists of their own, in every reference that this book has given out. Must be given all that was given out.
   */
  moveAside(given: readonly NewElements[]): void {
    // And what is planned, but not yet given out.
    const unstored = [...given, ...this.fresh];
    const moves = new Map<number, { from: number; list: number }>();
    for (const run of unstored) {
      const move = moves.get(run.list);
      if (move === undefined) moves.set(run.list, { from: run.position, list: newListId() });
      else move.from = Math.min(move.from, run.position);
    }
    for (const run of unstored) {
      const move = moves.get(run.list);
      if (move !== undefined) Object.assign(run, { list: move.list, position: run.position - move.from });
    }
    for (const weak of this.references) {
      const reference = weak.deref();
      if (reference === undefined) this.references.delete(weak);
      else
        reference.segments = reference.segments.flatMap((segment) =>
          movedSegment(segment, moves.get(segment.list)),
        );
    }
    for (const [list, { from, list: newList }] of moves) {
      this.ends.set(newList, Math.max((this.ends.get(list) ?? from) - from, 0));
      this.ends.set(list, from + 1);
    }
    // What is no longer recognised is only stored once more.
    this.places = new WeakMap();
    this.newPlaces = new WeakMap();
    this.unindexed = [];
  }

  private findPieces(
    array: readonly unknown[],
    before: LiveList | undefined,
    prefix: number,
    trees: unknown[],
  ): Piece[] {
    const pieces: Piece[] = [];
    let start = 0;
    for (const { list, from, to } of before?.reference.segments ?? []) {
      const end = Math.min(to, from + prefix - start);
      if (end <= from) break;
      pieces.push({ known: true, list, from, to: end, closed: false, start });
      start += end - from;
    }
    const places = this.findPlaces(array, before, prefix);
    for (let index = prefix; index < array.length; index++) {
      const place = places[index];
      const last = pieces[pieces.length - 1];
      if (place !== undefined && isUnchanged(array, index, place.tree)) {
        trees[index] = place.tree;
        const { list, position } = place;
        if (last?.known && last.list === list && last.to === position) last.to += 1;
        else
          pieces.push({ known: true, list, from: position, to: position + 1, closed: false, start: index });
      } else if (last !== undefined && !last.known) last.end = index + 1;
      else pieces.push({ known: false, start: index, end: index + 1 });
    }
    for (const piece of pieces) if (piece.known) piece.closed = this.ends.get(piece.list) !== piece.to;
    return pieces;
  }

  private findPlaces(
    array: readonly unknown[],
    before: LiveList | undefined,
    start: number,
  ): Array<Place | undefined> {
    const places: Array<Place | undefined> = [];
    let unplaced = array.length - start;
    if (before !== undefined && unplaced > 0) {
      const shift = before.elements.length - array.length;
      const cursor = new SegmentCursor(before.reference.segments);
      for (let index = start; index < array.length; index++) {
        const element = array[index];
        const same = sameAt(before, index, element) ? index : index + shift;
        if (same !== index && !sameAt(before, same, element)) continue;
        places[index] = cursor.place(same, before.trees[same]);
        unplaced -= 1;
      }
    }
    // Fewer would be stored again anyway; and a turn that only appends must not look up the whole thread.
    if (unplaced >= RUN_WORTH_A_SEGMENT) {
      for (let index = start; index < array.length; index++) {
        const element = array[index];
        if (typeof element === "object" && element !== null) places[index] ??= this.place(element);
      }
    }
    return places;
  }

  private placePieces(
    pieces: readonly Piece[],
    array: readonly unknown[],
    trees: unknown[],
    texts: readonly string[] | undefined,
  ): Segment[] {
    const segments: Segment[] = [];
    let ownList: number | undefined;
    for (const piece of pieces) {
      const last = segments[segments.length - 1];
      if (piece.known) {
        segments.push({ list: piece.list, from: piece.from, to: piece.to, closed: piece.closed });
        continue;
      }
      const length = piece.end - piece.start;
      let list: number;
      if (last !== undefined && !last.closed && this.ends.get(last.list) === last.to) list = last.list;
      else list = ownList ??= newListId();
      const position = this.ends.get(list) ?? 0;
      this.ends.set(list, position + length);
      this.store(list, position, array.slice(piece.start, piece.end), piece.start, trees, texts);
      if (last !== undefined && last.list === list && last.to === position) last.to += length;
      else segments.push({ list, from: position, to: position + length, closed: false });
    }
    for (const segment of segments) segment.closed ||= this.ends.get(segment.list) !== segment.to;
    return segments;
  }

  private store(
    list: number,
    position: number,
    elements: readonly unknown[],
    start: number,
    trees: unknown[],
    texts: readonly string[] | undefined,
  ): void {
    const run: NewElements = { list, position, texts: [], trees: [] };
    for (const [offset, element] of elements.entries()) {
      const text = texts?.[start + offset] ?? treeText(encode(element));
      // Parsed anew: the tree must not share anything with the live element, which may be changed in place.
      const tree: unknown = JSON.parse(text);
      trees[start + offset] = tree;
      run.texts.push(text);
      run.trees.push(tree);
      if (typeof element === "object" && element !== null) {
        this.newPlaces.set(element, { list, position: position + offset, text });
      }
    }
    this.fresh.push(run);
    this.unindexed.push({ list, position, elements, trees: run.trees });
  }

  private place(element: object): Place | undefined {
    this.index();
    return this.places.get(element);
  }

  private index(): void {
    for (const { list, position, elements, trees } of this.unindexed) {
      for (const [offset, live] of elements.entries()) {
        if (typeof live !== "object" || live === null) continue;
        this.places.set(live, { list, position: position + offset, tree: trees[offset] });
      }
    }
    this.unindexed = [];
  }
}

/** The usual case, without an allocation per element: the list begins as it did before. */
const unchangedPrefix = (array: readonly unknown[], { elements, trees }: LiveList): number => {
  const end = Math.min(array.length, elements.length);
  let index = 0;
  while (index < end && Object.is(array[index], elements[index]) && isUnchanged(array, index, trees[index]))
    index += 1;
  return index;
};

const isUnchanged = (array: readonly unknown[], index: number, tree: unknown): boolean =>
  index >= array.length - FULLY_COMPARED
    ? equalsTree(array[index], tree)
    : equalsTreeAtTop(array[index], tree);

const sameAt = (list: LiveList, index: number, element: unknown): boolean =>
  index >= 0 && index < list.elements.length && Object.is(list.elements[index], element);

/** Random, so that no two writers need to agree on it; fits a JavaScript number. */
const newListId = (): number => randomBytes(6).readUIntBE(0, 6) + 1;
