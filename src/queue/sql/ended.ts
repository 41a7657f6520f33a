/**
 * Stores what is to be told of runs that end, in the very statement that ends them: whoever is told hears of each end
 * once, or the run has not ended. Every statement by which a run ends has a row for each such run in a CTE `ended`, with
 * the columns of an `EndedRun`, `status` (see `EndStatus`) and `error`. This makes further CTEs of it, of which the last has no
 * comma behind it. Nothing is stored so far: the tables of webhooks, and of a thread's events, come here.
 */
export type RecordEnds = (ended: string) => string;

/** What goes between the CTE `ended` of a statement and its end. */
export const recorded = (record: RecordEnds | undefined): string =>
  record === undefined ? "" : `,\n${record("ended")}`;
