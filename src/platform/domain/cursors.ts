import { invalid } from "./errors.ts";

export const CURSOR_CHARACTERS = 500;

export interface Shape {
  test(key: string): boolean;
}

const YEAR_10000 = 253_402_300_800_000_000n;
/** Times from 1653 to 9999: JavaScript and PostgreSQL write other years differently. */
export const MICROSECONDS: Shape = {
  test: (key) => /^(-\d{1,16}|\d{1,18})$/.test(key) && BigInt(key) < YEAR_10000,
};
export const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Encodes the sort keys of a page's last record. Unlike an offset, a cursor skips and repeats no unchanged record. */
export const writeCursor = (order: string, keys: readonly string[]): string =>
  Buffer.from(JSON.stringify([order, ...keys])).toString("base64url");

const partsOf = (cursor: string): unknown => {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString());
  } catch {
    return undefined;
  }
};

/**
 * Returns the keys given to `writeCursor`. A client may have forged the keys, so they may choose only a position.
 * @throws invalid if the cursor is not from a list in this order
 */
export const readCursor = (cursor: string, order: string, shapes: readonly Shape[]): string[] => {
  const [name, ...keys] = [partsOf(cursor)].flat() as unknown[];
  const fits =
    name === order &&
    keys.length === shapes.length &&
    shapes.every((shape, place) => typeof keys[place] === "string" && shape.test(keys[place]));
  if (!fits) {
    throw invalid(
      "'cursor': this is not the X-Pagination-Cursor of such a list in the same order; leave it out to begin anew.",
    );
  }
  return keys as string[];
};

/** @throws invalid */
export const assertOnePlace = ({ cursor, offset }: { cursor?: string | undefined; offset: number }): void => {
  if (cursor !== undefined && offset > 0) throw invalid("'cursor': give it without 'offset'.");
};

/** SQL: microseconds since 1970, the precision of PostgreSQL. */
export const microsecondsOf = (column: string): string =>
  `(extract(epoch from ${column}) * 1000000)::bigint::text`;

/** JavaScript's times have only milliseconds. */
export const timeOf = (microseconds: string): string => {
  const whole = BigInt(microseconds);
  // The remainder is negative for times before 1970.
  const rest = ((whole % 1_000n) + 1_000n) % 1_000n;
  const milliseconds = Number((whole - rest) / 1_000n);
  return new Date(milliseconds).toISOString().replace("Z", `${String(rest).padStart(3, "0")}Z`);
};
