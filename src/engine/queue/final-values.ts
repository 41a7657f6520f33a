/** The form in which a run's last values lie with its end: the one place that knows it, from JSON to the column and back. */

import { openText, type Cipher } from "../../platform/encryption/cipher.ts";

/** Bytes of a run's last values that are kept for those who are told of its end. Whoever needs more reads the thread. */
const BYTES_AT_MOST = 4_000_000;

const LINE_BREAK = Buffer.from("\n");
/** In the place of interrupts that are larger than that. */
const TOO_LARGE = Buffer.from("null");

/** A run's last values, to be stored with its end. */
export interface FinalValues {
  /** UTF-8 of their JSON; behind it, on a line of its own, the interrupts at which the run stopped. Null: neither. */
  values: Buffer | null;
  /** The values are too large. */
  omitted: boolean;
}

/** Undefined: it is too large. The length says at once what is far too long: a character takes one to three bytes. */
const bounded = (text: string, bytesAtMost: number): Buffer | undefined => {
  if (text.length > bytesAtMost) return undefined;
  const bytes = Buffer.from(text, "utf8");
  return bytes.length > bytesAtMost ? undefined : bytes;
};

/** Both are JSON, which has no line break. `interrupts`: a list; undefined if the run did not stop at one. */
export const toFinalValues = (json: string | undefined, interrupts?: string): FinalValues => {
  const asked = interrupts === undefined ? undefined : (bounded(interrupts, BYTES_AT_MOST) ?? TOO_LARGE);
  const values = json === undefined ? undefined : bounded(json, BYTES_AT_MOST - (asked?.length ?? 0));
  const omitted = json !== undefined && values === undefined;
  if (asked === undefined) return { values: values ?? null, omitted };
  return { values: Buffer.concat([values ?? Buffer.alloc(0), LINE_BREAK, asked]), omitted };
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
    : Buffer.from(cipher.encrypt(values.toString("utf8"), placeOf(threadId ?? "")));

/** The same as they were before they were sealed. Throws an `EncryptionError`. */
export const openFinalValues = (
  cipher: Cipher | undefined,
  stored: Buffer | null,
  threadId: string,
): Buffer | null =>
  stored === null ? null : Buffer.from(openText(cipher, stored.toString("utf8"), placeOf(threadId)));

/** The JSON of values that are open, and of the interrupts: `null` if these were too large. */
export const fromFinalValues = (
  stored: Buffer | null,
): { values: string | undefined; interrupts: string | undefined } => {
  const [values = "", interrupts] = stored?.toString("utf8").split("\n") ?? [];
  return { values: values === "" ? undefined : values, interrupts };
};
