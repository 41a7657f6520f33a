/** What the official savers write in the place of an object that contains itself. */
export const CIRCULAR = "[Circular]";
/**
 * How often objects of a value that contains itself may come again beside themselves. Objects that all name each other
 * (the people of a network) have more paths through them than any computer can write.
 */
const REPEATS_AT_MOST = 10_000;

class CycleFound extends Error {}

/** The objects that stand above the one that is being written. */
export class Ancestry {
  private readonly ancestors = new Set<object>();
  private readonly seen = new Set<object>();
  private repeats = 0;

  constructor(private readonly replaces = false) {}

  /** False if CIRCULAR has to stand in its place. `leave` it when it is written. */
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
 * Writes a value that may contain itself. Nearly none does, and remembering ancestors is half of the work, so `write`
 * is first called without: it makes an Ancestry of its own where it gets suspiciously deep. If that finds a cycle, it is
 * called again with one that is to be used from the top. Without the second time an object that names itself twice
 * would be written 2 to the power of that depth times: the process stood still for ever.
 */
export const withoutCycles = <Written>(write: (ancestry: Ancestry | undefined) => Written): Written => {
  try {
    return write(undefined);
  } catch (error) {
    if (!(error instanceof CycleFound)) throw error;
    return write(new Ancestry(true));
  }
};
