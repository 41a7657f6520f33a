import { openText, type Cipher } from "../../encryption/cipher.ts";

const placeOf = (threadId: string): string => `values ${threadId}`;

/** The last values of a run, as they are stored with its end. */
export const storedFinalValues = (
  cipher: Cipher | undefined,
  values: Buffer | null | undefined,
  threadId: string | undefined,
): Buffer | null =>
  cipher === undefined || values == null
    ? (values ?? null)
    : Buffer.from(cipher.seal(values.toString("utf8"), placeOf(threadId ?? "")));

/** The same as they were before they were sealed. */
export const openFinalValues = (
  cipher: Cipher | undefined,
  stored: Buffer | null,
  threadId: string,
): Buffer | null =>
  stored === null ? null : Buffer.from(openText(cipher, stored.toString("utf8"), placeOf(threadId)));
