/** The current state of an identity provider, shared by a test and the `Auth` module that its server loads. */
export interface Directory {
  readonly expired: Set<string>;
  readonly barred: Set<string>;
  /** Answers 503. */
  isAway: boolean;
  /** Throws an error other than HTTPException, like a client of an unreachable provider. */
  isUnreachable: boolean;
  readonly shown: Map<string, number>;
}

const PLACE = Symbol.for("threadloom.test.directory");
const all = globalThis as { [PLACE]?: Directory };

/** The server loads its own copy of this module, so both share one object through globalThis. */
export const directory: Directory = (all[PLACE] ??= {
  expired: new Set(),
  barred: new Set(),
  isAway: false,
  isUnreachable: false,
  shown: new Map(),
});
