/** JSON never contains these control characters. */

export const LINE = "\n";
export const RECORD = "\u001e";
/** See row-text.ts. */
export const GROUP = "\u001d";
export const OLDER = "\u001c";
export const UNIT = "\u001f";
/** See write-statement.ts. */
export const FIELD = "\u001b";
