import { sql, type RawBuilder, type SqlBool } from "kysely";
import { ID, MICROSECONDS, microsecondsOf, readCursor, timeOf, writeCursor, type Shape } from "./cursors.ts";
import { invalid } from "./errors.ts";

/** By one column, then by id. Rows without a value come last in both directions. */
export interface KeyOrder {
  list: string;
  key: string;
  /** Texts may have any length, so a list by a text has no cursor. */
  holds: "times" | "ids" | "texts";
  id: string;
  direction: "asc" | "desc";
}

export interface KeyColumns {
  cursor_key: string | null;
  cursor_id: string;
}

const NO_VALUE = "none";
const orNone = (shape: Shape): Shape => ({ test: (key) => key === NO_VALUE || shape.test(key) });
const SHAPES = { times: orNone(MICROSECONDS), ids: orNone(ID) };
const nameOf = ({ list, key, direction }: KeyOrder): string => `${list} ${key} ${direction}`;

export const keyOf = ({ key, holds }: KeyOrder): string =>
  ({ times: microsecondsOf(key), ids: `${key}::text`, texts: "null::text" })[holds];

/** Undefined on the last page. `matching` counts the rows from the page's cursor, or from the start of the list. */
export const nextCursor = (
  order: KeyOrder,
  rows: readonly KeyColumns[],
  { offset, matching }: { offset: number; matching: number },
): string | undefined => {
  const last = rows.at(-1);
  if (last === undefined || order.holds === "texts" || offset + rows.length >= matching) return undefined;
  return writeCursor(nameOf(order), [last.cursor_key ?? NO_VALUE, last.cursor_id]);
};

/**
 * The rows after a cursor.
 * @throws invalid if the cursor is not of this list in this order
 */
export const isBehindCursor = (order: KeyOrder, cursor: string): RawBuilder<SqlBool> => {
  const { holds, direction } = order;
  if (holds === "texts")
    throw invalid(`'cursor': a list by '${order.key}' has none; sort by 'created_at', or give 'offset'.`);
  const [value = "", lastId = ""] = readCursor(cursor, nameOf(order), [SHAPES[holds], ID]);
  const [key, id, than] = [sql.raw(order.key), sql.raw(order.id), sql.raw(direction === "asc" ? ">" : "<")];
  if (value === NO_VALUE) return sql`(${key} is null and ${id} ${than} ${lastId}::uuid)`;
  const at = holds === "times" ? sql`${timeOf(value)}::timestamptz` : sql`${value}::uuid`;
  return sql`((${key}, ${id}) ${than} (${at}, ${lastId}::uuid) or ${key} is null)`;
};
