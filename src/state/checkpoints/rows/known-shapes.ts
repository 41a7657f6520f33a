import { contentHash } from "./content-hash.ts";
import type { NewShape } from "./new-rows.ts";
import type { Shape } from "./checkpoint-body.ts";

/** A graph has a few shapes; more than these have the graphs that make up their nodes at run time. */
const SHAPES_AT_MOST = 1_000;

/** The shapes that this process has met. */
export class KnownShapes {
  private readonly parsed = new Map<string, Shape>();
  /** By text and metadata. */
  private readonly hashes = new Map<string, string>();
  /** Hashes of those that stand in the database: nothing ever deletes them there. */
  private readonly stored = new Set<string>();

  parse(text: string): Shape {
    return remembered(this.parsed, text, () => JSON.parse(text) as Shape);
  }

  /** The hash of a shape that is to be referred to, and the shape itself if it has still to be stored. */
  refer(text: string, metadata: string): { hash: string; newShape: NewShape | undefined } {
    const key = `${text}\n${metadata}`;
    const hash = remembered(this.hashes, key, () => contentHash(key));
    return { hash, newShape: this.isStored(hash) ? undefined : { hash, text, metadata } };
  }

  isStored(hash: string): boolean {
    return this.stored.has(hash);
  }

  /** The database may have crashed, and lost what it had not yet written to its disk. */
  invalidateStored(): void {
    this.stored.clear();
  }

  /** It was read from the database or committed to it. */
  markStored(hash: string): void {
    if (this.stored.size >= SHAPES_AT_MOST) this.stored.clear();
    this.stored.add(hash);
  }
}

const remembered = <Value>(known: Map<string, Value>, key: string, make: () => Value): Value => {
  const found = known.get(key);
  if (found !== undefined) return found;
  if (known.size >= SHAPES_AT_MOST) known.clear();
  const made = make();
  known.set(key, made);
  return made;
};
