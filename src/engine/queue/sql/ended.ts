/**
 * Returns CTEs (comma-separated, no trailing comma) that store the deliveries in the statement that ends the
 * runs. `ended`: a CTE with a row per run: the columns of `EndedRun`, `status` (`EndStatus`) and `error`. The
 * added CTEs have the prefix `record_` and read the run's old row. Deliveries have no foreign key to runs or
 * threads, because `forget` and `delete-threads` delete those rows.
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

/**
 * As `RecordEnds`, for push notifications. They are deleted with their runs, so only statements that keep the runs have
 * this CTE.
 */
export type RecordPushes = (ended: string) => string;

export const withPushes = (record: RecordPushes | undefined): string =>
  record === undefined ? "" : `,\n${record("ended")}`;
