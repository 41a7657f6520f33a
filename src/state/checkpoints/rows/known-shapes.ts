import { contentHash } from "./content-hash.ts";
import type { NewShape } from "./new-rows.ts";
import type { Shape } from "./checkpoint-body.ts";

/** Graphs that create nodes at run time have many shapes. */
const SHAPES_AT_MOST = 1_000;

export class KnownShapes {
  private readonly parsed = new Map<string, Shape>();
  private readonly hashes = new Map<string, string>();
  /** The database never deletes shapes. */
  private readonly stored = new Set<string>();

  parse(text: string): Shape {
    return remembered(this.parsed, text, () => JSON.parse(text) as Shape);
  }

  /** `newShape`: set if the shape still has to be stored. */
  refer(text: string, metadata: string): { hash: string; newShape: NewShape | undefined } {
    const key = `${text}\n${metadata}`;
    const hash = remembered(this.hashes, key, () => contentHash(key));
    return { hash, newShape: this.isStored(hash) ? undefined : { hash, text, metadata } };
  }

  isStored(hash: string): boolean {
    return this.stored.has(hash);
  }

  /** A crash of the database may lose writes that had not reached the disk. */
  invalidateStored(): void {
    this.stored.clear();
  }

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
