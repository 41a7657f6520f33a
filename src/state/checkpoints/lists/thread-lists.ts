/**
 * A stored list is an array of segments of rows, usually one; a list that was changed in the middle has more. Elements
 * are recognised by identity, so no element is serialized twice.
 */

import { randomBytes } from "node:crypto";
import { LARGE_STRING_CHARACTERS } from "../../values/large-strings.ts";
import { encode, stateTooLarge, treeText } from "../../values/encoding.ts";
import { ElementPlaces } from "./element-places.ts";
import { movedSegment, SegmentCursor, type ElementPlace, type Segment } from "./segments.ts";
import {
  fullyComparedFrom,
  isSameAt,
  isUnchanged,
  unchangedPrefix,
  type ListReference,
  type LiveList,
  type NewElements,
} from "./stored-list.ts";
import { joinStretches, STRETCH_WORTH_A_SEGMENT, type Stretch } from "./stretches.ts";

const SEGMENTS_AT_MOST = 64;

export class ThreadLists {
  /** The ends that this writer knows. The database decides. */
  private readonly ends = new Map<number, number>();
  private readonly references = new Set<WeakRef<ListReference>>();
  private readonly places = new ElementPlaces();
  private planned: NewElements[] = [];
  /** Until the database has them, another writer may take their positions. */
  private readonly unstored = new Set<NewElements>();

  /** `toStored`: the text of an element without its large strings. */
  constructor(
    private readonly charactersAtMost = Infinity,
    private readonly toStored: (text: string) => string = (text) => text,
  ) {}

  /**
   * False: another writer has stored elements where this writer plans to store others. Then the segments of the list
   * can't be told from those that `moveAside` moves, and a new version of the list is stored whole.
   */
  remember({ reference, elements, trees }: LiveList): boolean {
    for (const { list, to } of reference.segments)
      for (const planned of this.unstored) if (planned.list === list && planned.position < to) return false;
    let start = 0;
    for (const { list, from, to, closed } of reference.segments) {
      this.ends.set(list, Math.max(this.ends.get(list) ?? 0, closed ? to + 1 : to));
      const end = start + to - from;
      const slices = { elements: elements.slice(start, end), trees: trees.slice(start, end) };
      this.places.add({ list, position: from, ...slices });
      start = end;
    }
    this.references.add(new WeakRef(reference));
    return true;
  }

  knows(element: unknown): boolean {
    return this.places.find(element) !== undefined;
  }

  findNew(array: readonly unknown[]): { segment: Segment; texts: string[] } | undefined {
    return this.places.findNew(array);
  }

  takeNewElements(): NewElements[] {
    const taken = this.planned;
    this.planned = [];
    return taken;
  }

  markStored(elements: readonly NewElements[]): void {
    for (const stored of elements) this.unstored.delete(stored);
  }

  /** `before` is the last stored version; `texts` are the texts of the elements, if available. */
  plan(array: readonly unknown[], before: LiveList | undefined, texts?: readonly string[]): LiveList {
    const prefix = before === undefined ? 0 : unchangedPrefix(array, before);
    if (before !== undefined && prefix === array.length && prefix === before.elements.length) return before;
    const trees = before?.trees.slice(0, prefix) ?? [];
    let stretches = joinStretches(this.findStretches(array, before, prefix, trees));
    if (stretches.length > SEGMENTS_AT_MOST) stretches = [{ known: false, start: 0, end: array.length }];
    const reference = { segments: this.placeStretches(stretches, array, trees, texts) };
    this.references.add(new WeakRef(reference));
    return { reference, elements: array.slice(), trees };
  }

  /** Moves all unstored elements to new lists, because another writer has taken their positions. */
  moveAside(): void {
    const moves = new Map<number, { from: number; list: number }>();
    for (const { list, position } of this.unstored) {
      const move = moves.get(list);
      if (move === undefined) moves.set(list, { from: position, list: newListId() });
      else move.from = Math.min(move.from, position);
    }
    for (const elements of this.unstored) {
      const move = moves.get(elements.list);
      if (move === undefined) continue;
      Object.assign(elements, { list: move.list, position: elements.position - move.from });
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
    this.places.forgetAll();
  }

  private findStretches(
    array: readonly unknown[],
    before: LiveList | undefined,
    prefix: number,
    trees: unknown[],
  ): Stretch[] {
    const stretches: Stretch[] = [];
    let start = 0;
    for (const { list, from, to } of before?.reference.segments ?? []) {
      const end = Math.min(to, from + prefix - start);
      if (end <= from) break;
      stretches.push({ known: true, list, from, to: end, closed: false, start });
      start += end - from;
    }
    const places = this.findPlaces(array, before, prefix);
    const fullyFrom = fullyComparedFrom(array, before);
    for (let index = prefix; index < array.length; index++) {
      const place = places[index];
      const last = stretches[stretches.length - 1];
      if (place !== undefined && isUnchanged(array[index], place.tree, index >= fullyFrom)) {
        trees[index] = place.tree;
        const { list, position: from } = place;
        if (last?.known && last.list === list && last.to === from) last.to += 1;
        else stretches.push({ known: true, list, from, to: from + 1, closed: false, start: index });
      } else if (last !== undefined && !last.known) last.end = index + 1;
      else stretches.push({ known: false, start: index, end: index + 1 });
    }
    for (const stretch of stretches) {
      if (stretch.known) stretch.closed = this.ends.get(stretch.list) !== stretch.to;
    }
    return stretches;
  }

  private findPlaces(
    array: readonly unknown[],
    before: LiveList | undefined,
    start: number,
  ): Array<ElementPlace | undefined> {
    const places: Array<ElementPlace | undefined> = [];
    let unplaced = array.length - start;
    if (before !== undefined && unplaced > 0) {
      const shift = before.elements.length - array.length;
      const cursor = new SegmentCursor(before.reference.segments);
      for (let index = start; index < array.length; index++) {
        const element = array[index];
        const same = isSameAt(before, index, element) ? index : index + shift;
        // Another object is stored again, however equal it looks.
        if (same === index + shift && !isSameAt(before, same, element)) continue;
        places[index] = cursor.place(same, before.trees[same]);
        unplaced -= 1;
      }
    }
    // A turn that only appends must not index the whole thread.
    if (unplaced >= STRETCH_WORTH_A_SEGMENT) {
      for (let index = start; index < array.length; index++) places[index] ??= this.places.find(array[index]);
    }
    return places;
  }

  private placeStretches(
    stretches: readonly Stretch[],
    array: readonly unknown[],
    trees: unknown[],
    texts: readonly string[] | undefined,
  ): Segment[] {
    const segments: Segment[] = [];
    let ownList: number | undefined;
    for (const stretch of stretches) {
      const last = segments[segments.length - 1];
      if (stretch.known) {
        const { list, from, to, closed } = stretch;
        segments.push({ list, from, to, closed });
        continue;
      }
      const length = stretch.end - stretch.start;
      let list: number;
      if (last !== undefined && !last.closed && this.ends.get(last.list) === last.to) list = last.list;
      else list = ownList ??= newListId();
      const position = this.ends.get(list) ?? 0;
      this.ends.set(list, position + length);
      this.planElements(
        { list, position },
        array.slice(stretch.start, stretch.end),
        stretch.start,
        trees,
        texts,
      );
      if (last !== undefined && last.list === list && last.to === position) last.to += length;
      else segments.push({ list, from: position, to: position + length, closed: false });
    }
    for (const segment of segments) segment.closed ||= this.ends.get(segment.list) !== segment.to;
    return segments;
  }

  private planElements(
    { list, position }: { list: number; position: number },
    elements: readonly unknown[],
    start: number,
    trees: unknown[],
    texts: readonly string[] | undefined,
  ): void {
    const planned: NewElements = { list, position, texts: [], trees: [] };
    let characters = 0;
    for (const [offset, element] of elements.entries()) {
      const text = texts?.[start + offset] ?? treeText(encode(element));
      characters += text.length;
      if (characters > this.charactersAtMost) throw stateTooLarge(this.charactersAtMost);
      // The tree must share nothing with the live element, which may change in place.
      const tree: unknown = JSON.parse(text);
      trees[start + offset] = tree;
      planned.texts.push(text.length < LARGE_STRING_CHARACTERS ? text : this.toStored(text));
      planned.trees.push(tree);
    }
    this.planned.push(planned);
    this.unstored.add(planned);
    this.places.addNew({ list, position, elements, trees: planned.trees }, planned.texts);
  }
}

/** Random, so that writers need not agree. Fits a JavaScript number. */
const newListId = (): number => randomBytes(6).readUIntBE(0, 6) + 1;
