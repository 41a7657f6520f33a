/** What jsonb refuses: NUL, and a surrogate that stands alone (JSON.stringify escapes only those). */
const NOT_IN_JSONB = /\\u0000|\\ud[89a-f][0-9a-f]{2}/g;

/** A JSON text as jsonb can hold it, and the text itself if that is another. */
export const toJsonb = (text: string): { jsonb: string; exact: string | undefined } => {
  const jsonb = text.replace(NOT_IN_JSONB, "\\ufffd");
  return { jsonb, exact: jsonb === text ? undefined : text };
};
