/** The input of a run, or of a node. */
export type Input = Record<string, unknown>;
