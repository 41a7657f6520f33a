/** Bytes of a run's last values that are kept for those who are told of its end. Whoever needs more reads the thread. */
export const FINAL_VALUES_BYTES_AT_MOST = 4_000_000;

/** A run's last values as they are stored with its end. */
export interface FinalValues {
  /** Null: the run has none, or they are too large. */
  values: Buffer | null;
  /** They are too large. */
  omitted: boolean;
}

/** From JSON to what is stored, and back: the one place that knows the form in which values lie in the outbox. */
export const toStoredValues = (json: string | undefined): FinalValues => {
  if (json === undefined) return { values: null, omitted: false };
  // Two bytes of memory and one to three of the text: the length says at once what is far too long.
  if (json.length > FINAL_VALUES_BYTES_AT_MOST) return { values: null, omitted: true };
  const values = Buffer.from(json, "utf8");
  return values.length > FINAL_VALUES_BYTES_AT_MOST
    ? { values: null, omitted: true }
    : { values, omitted: false };
};

export const fromStoredValues = (values: Buffer | null): string | undefined => values?.toString("utf8");
