/** What an identity provider says at the moment: shared by a test and the `Auth` that its server loads. */
export interface Directory {
  /** Tokens that are no longer good. */
  readonly expired: Set<string>;
  /** Users who may read no threads. */
  readonly barred: Set<string>;
  /** Answers 503. */
  isAway: boolean;
  /** Throws what is no HTTPException, as a client of a provider that can't be reached does. */
  isUnreachable: boolean;
  /** How often each token was shown. */
  readonly shown: Map<string, number>;
}

const PLACE = Symbol.for("threadloom.test.directory");
const all = globalThis as { [PLACE]?: Directory };

/** The server loads modules of its own: the same one stands where both find it. */
export const directory: Directory = (all[PLACE] ??= {
  expired: new Set(),
  barred: new Set(),
  isAway: false,
  isUnreachable: false,
  shown: new Map(),
});
