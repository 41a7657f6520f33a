import type { ElementPlace, Segment } from "./segments.ts";

interface PlacedElements {
  list: number;
  position: number;
  elements: readonly unknown[];
  trees: readonly unknown[];
}

/** `unindexed` holds elements strongly. */
const UNINDEXED_AT_MOST = 64;

/** Recognises objects by identity and holds them weakly. */
export class ElementPlaces {
  private places = new WeakMap<object, ElementPlace>();
  private newPlaces = new WeakMap<object, { list: number; position: number; text: string }>();
  /** A turn that only appends never searches, so the index is built on the first search. */
  private unindexed: PlacedElements[] = [];

  add(placed: PlacedElements): void {
    this.unindexed.push(placed);
    if (this.unindexed.length > UNINDEXED_AT_MOST) this.index();
  }

  /** No limit: the graph holds these elements anyway, and weak references cost the garbage collector time. */
  addNew(placed: PlacedElements, texts: readonly string[]): void {
    this.unindexed.push(placed);
    for (const [offset, element] of placed.elements.entries()) {
      const text = texts[offset];
      if (typeof element === "object" && element !== null && text !== undefined) {
        this.newPlaces.set(element, { list: placed.list, position: placed.position + offset, text });
      }
    }
  }

  find(element: unknown): ElementPlace | undefined {
    if (typeof element !== "object" || element === null) return undefined;
    this.index();
    return this.places.get(element);
  }

  /** Undefined unless this writer stored all elements of the array in this order. */
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

  /** Safe: an element that is not recognised is stored again. */
  forgetAll(): void {
    this.places = new WeakMap();
    this.newPlaces = new WeakMap();
    this.unindexed = [];
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
