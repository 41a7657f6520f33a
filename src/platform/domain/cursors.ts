import { invalid } from "./errors.ts";

/** Longer than any cursor that a list gives. */
export const CURSOR_CHARACTERS = 500;

/** The shape of a key, for `readCursor`. */
export interface Shape {
  test(key: string): boolean;
}

const YEAR_10000 = 253_402_300_800_000_000n;
/** Times from 1653 to 9999: JavaScript and PostgreSQL write the years of others differently. */
export const MICROSECONDS: Shape = {
  test: (key) => /^(-\d{1,16}|\d{1,18})$/.test(key) && BigInt(key) < YEAR_10000,
};
export const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Says where a page of a list has ended: the keys of its last record, by which the list is ordered. A page that begins there misses
 * nothing and repeats nothing of what has not changed, unlike one that begins at an offset. Clients hand it back as it is.
 * @param order of the list, by name: a cursor holds for no other
 */
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
 * The keys that `writeCursor` was given. A client may have written them himself: they say where to go on, and nothing of what may be seen.
 * @param shapes of the keys, one each
 * @throws invalid if the cursor is none of a list in this order
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

/** SQL for a time as a cursor has it: whole microseconds since 1970, which is all that PostgreSQL knows of it. */
export const microsecondsOf = (column: string): string =>
  `(extract(epoch from ${column}) * 1000000)::bigint::text`;

/** The time of `microsecondsOf`, for a parameter. JavaScript's own times have milliseconds. */
export const timeOf = (microseconds: string): string => {
  const whole = BigInt(microseconds);
  // Never negative: before 1970 the remainder of a division is.
  const rest = ((whole % 1_000n) + 1_000n) % 1_000n;
  const milliseconds = Number((whole - rest) / 1_000n);
  return new Date(milliseconds).toISOString().replace("Z", `${String(rest).padStart(3, "0")}Z`);
};
