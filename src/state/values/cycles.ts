/** As the official savers write it. */
export const CIRCULAR = "[Circular]";
/** Objects that all name each other have too many paths to write. */
const REPEATS_AT_MOST = 10_000;

class CycleFound extends Error {}

export class Ancestry {
  private readonly ancestors = new Set<object>();
  private readonly seen = new Set<object>();
  private repeats = 0;

  constructor(private readonly replaces = false) {}

  /** False: CIRCULAR replaces the object. Call `leave` after writing it. */
  enter(value: object): boolean {
    if (this.ancestors.has(value)) {
      if (this.replaces) return false;
      throw new CycleFound();
    }
    if (this.replaces) {
      if (this.seen.has(value) && ++this.repeats > REPEATS_AT_MOST) return false;
      this.seen.add(value);
    }
    this.ancestors.add(value);
    return true;
  }

  leave(value: object): void {
    this.ancestors.delete(value);
  }
}

/**
 * Remembering ancestors is half of the work and cycles are rare, so the first `write` remembers them only at deep
 * nesting. After a cycle, `write` runs again from the top: an object that names itself twice would otherwise be written
 * 2^64 times.
 */
export const withoutCycles = <Written>(write: (ancestry: Ancestry | undefined) => Written): Written => {
  try {
    return write(undefined);
  } catch (error) {
    if (!(error instanceof CycleFound)) throw error;
    return write(new Ancestry(true));
  }
};
