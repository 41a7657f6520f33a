import { contentHash } from "./hash.ts";

interface KnownShape {
  hash: string;
  parsed: unknown;
  /** True if it stands in the database: nothing ever deletes it there. */
  stored: boolean;
}

/** A graph has a few shapes; more than these have the graphs that make up their nodes at run time. */
const SHAPES_AT_MOST = 1_000;

/** The shapes that this process has met, by their text. */
export class ShapeBook {
  private readonly shapes = new Map<string, KnownShape>();

  parse(text: string): unknown {
    return this.know(text).parsed;
  }

  /** The hash of a shape that is to be referred to, and whether it has still to be stored. */
  refer(text: string): { hash: string; isNew: boolean } {
    const { hash, stored } = this.know(text);
    return { hash, isNew: !stored };
  }

  /** It was read from the database or committed to it. */
  markStored(text: string): void {
    this.know(text).stored = true;
  }

  private know(text: string): KnownShape {
    let shape = this.shapes.get(text);
    if (shape === undefined) {
      if (this.shapes.size >= SHAPES_AT_MOST) this.shapes.clear();
      this.shapes.set(text, (shape = { hash: contentHash(text), parsed: JSON.parse(text), stored: false }));
    }
    return shape;
  }
}
