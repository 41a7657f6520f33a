/**
 * Returns the text of CTEs (comma-separated, no trailing comma) that store the deliveries of runs that end.
 * They belong to the statement that ends the run, so a delivery is stored if and only if the run has ended;
 * engine/outbox/record.ts writes them. Every such statement has a CTE `ended` with a row per run: the columns
 * of `EndedRun`, `status` (`EndStatus`) and `error`. Names of the added CTEs begin with `record_`. They still
 * read the run's old row in `runs`. Stored deliveries have no foreign key to runs or threads, because
 * `forget` and `delete-threads` delete those rows.
 */
export type RecordEnds = (ended: string, values: FinalValues) => string;

/** SQL for the last values of the runs; see `RunOutcome.final`. */
export interface FinalValues {
  finalValues: string;
  valuesOmitted: string;
}

/** For runs that no attempt brought to an end. */
const NO_VALUES: FinalValues = { finalValues: "null::bytea", valuesOmitted: "false" };

/** The text between the CTE `ended` and the end of the statement. */
export const recorded = (record: RecordEnds | undefined, values: FinalValues = NO_VALUES): string =>
  record === undefined ? "" : `,\n${record("ended", values)}`;
