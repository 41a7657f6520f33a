/** Separate texts in one parameter or column. JSON never contains these control characters. */

export const LINE = "\n";
export const RECORD = "\u001e";
/** Separate the parts of a row's text, see row-text.ts. */
export const GROUP = "\u001d";
export const OLDER = "\u001c";
export const UNIT = "\u001f";
