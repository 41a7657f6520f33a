/**
 * Returns CTEs (comma-separated, no trailing comma) that store the deliveries of runs in the statement that
 * ends them, so a delivery is stored if and only if the run has ended. Every such statement has a CTE `ended`
 * with a row per run: the columns of `EndedRun`, `status` (`EndStatus`) and `error`. Names of the added CTEs
 * begin with `record_`; they still read the run's old row. Deliveries have no foreign key to runs or threads,
 * because `forget` and `delete-threads` delete those rows.
 */
export type RecordEnds = (ended: string, values: FinalValues) => string;

/** See `RunOutcome.final`. */
interface FinalValues {
  finalValues: string;
  valuesOmitted: string;
}

const NO_VALUES: FinalValues = { finalValues: "null::bytea", valuesOmitted: "false" };

export const recorded = (record: RecordEnds | undefined, values: FinalValues = NO_VALUES): string =>
  record === undefined ? "" : `,\n${record("ended", values)}`;
