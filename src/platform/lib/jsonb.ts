/**
 * jsonb refuses NUL and lone surrogates. JSON.stringify escapes lone surrogates, but no pairs. An escaped backslash may
 * stand before the literal text `u0000`.
 */
const NOT_IN_JSONB = /\\\\|\\u0000|\\ud[89a-f][0-9a-f]{2}/g;
const BACKSLASH = "\\\\";

export const toJsonb = (text: string): { jsonb: string; exact: string | undefined } => {
  const jsonb = text.replace(NOT_IN_JSONB, (escape) => (escape === BACKSLASH ? escape : "\\ufffd"));
  return { jsonb, exact: jsonb === text ? undefined : text };
};
