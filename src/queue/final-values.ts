/** The form in which a run's last values lie with its end: the one place that knows it, from JSON to the column and back. */

import { openText, type Cipher } from "../encryption/cipher.ts";

/** Bytes of a run's last values that are kept for those who are told of its end. Whoever needs more reads the thread. */
const BYTES_AT_MOST = 4_000_000;

/** A run's last values, to be stored with its end. */
export interface FinalValues {
  /** UTF-8 of their JSON. Null: the run has none, or they are too large. */
  values: Buffer | null;
  /** They are too large. */
  omitted: boolean;
}

export const toFinalValues = (json: string | undefined): FinalValues => {
  if (json === undefined) return { values: null, omitted: false };
  // Two bytes of memory and one to three of the text: the length says at once what is far too long.
  if (json.length > BYTES_AT_MOST) return { values: null, omitted: true };
  const values = Buffer.from(json, "utf8");
  return values.length > BYTES_AT_MOST ? { values: null, omitted: true } : { values, omitted: false };
};

const placeOf = (threadId: string): string => `values ${threadId}`;

/** As the column has them. */
export const storedFinalValues = (
  cipher: Cipher | undefined,
  values: Buffer | null | undefined,
  threadId: string | undefined,
): Buffer | null =>
  cipher === undefined || values == null
    ? (values ?? null)
    : Buffer.from(cipher.seal(values.toString("utf8"), placeOf(threadId ?? "")));

/** The same as they were before they were sealed. Throws an `EncryptionError`. */
export const openFinalValues = (
  cipher: Cipher | undefined,
  stored: Buffer | null,
  threadId: string,
): Buffer | null =>
  stored === null ? null : Buffer.from(openText(cipher, stored.toString("utf8"), placeOf(threadId)));

/** The JSON of values that are open. */
export const fromFinalValues = (values: Buffer | null): string | undefined => values?.toString("utf8");
