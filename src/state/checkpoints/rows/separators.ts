/**
 * Between texts that travel in one parameter, or stand in one column: control characters, which JSON never holds.
 */

export const LINE = "\n";
export const RECORD = "\u001e";
/** Between the parts of a row's text, see row-text.ts. */
export const GROUP = "\u001d";
export const OLDER = "\u001c";
export const UNIT = "\u001f";
