/**
 * Stores what is to be told of runs that end, in the very statement that ends them: whoever is told hears of each end
 * once, or the run has not ended. `engine/outbox/record.ts` has what is stored.
 *
 * Every statement by which a run ends has a CTE of the given name (`ended`), with a row for each run that it ends: the
 * columns of an `EndedRun`, `status` (see `EndStatus`) and `error`. `RecordEnds` returns the text of one or more further CTEs
 * that read it, separated by commas, without a comma at the end. Their names begin with `record_`: `thread`, `events`,
 * `forgotten`, `next` and `taken_over` are taken by some of the statements. The row of the run itself is still to be
 * seen in the table of runs, as it was before. What is stored has no foreign key to runs or threads, since two of the
 * statements (`forget`, `delete-threads`) delete those rows.
 */
export type RecordEnds = (ended: string, values: FinalValues) => string;

/** SQL for the last values of the runs that end; see `RunOutcome.told`. */
export interface FinalValues {
  finalValues: string;
  valuesOmitted: string;
}

/** Of runs that an attempt did not bring to their end. */
const NO_VALUES: FinalValues = { finalValues: "null::bytea", valuesOmitted: "false" };

/** What goes between the CTE `ended` of a statement and its end. */
export const recorded = (record: RecordEnds | undefined, values: FinalValues = NO_VALUES): string =>
  record === undefined ? "" : `,\n${record("ended", values)}`;
