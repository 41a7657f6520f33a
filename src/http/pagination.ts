export interface Page<Item> {
  items: Item[];
  /** The number of all matches; undefined for pages after a cursor. */
  total: number | undefined;
  offset: number;
  /** The next page begins here. Undefined on the last page, and for orders without cursors. */
  cursor?: string | undefined;
}

/** `found`: the number of matches, if an item of the page carries it. */
export const totalOf = async (
  { cursor, offset }: { cursor?: string | undefined; offset: number },
  found: number | undefined,
  count: () => Promise<number>,
): Promise<number | undefined> =>
  cursor === undefined ? (found ?? (offset === 0 ? 0 : await count())) : undefined;

/** `X-Pagination-Next` is missing on the last page: the SDK stops there. */
export const paginationHeaders = ({
  items,
  total,
  offset,
  cursor,
}: Page<unknown>): Record<string, string> => {
  const next = offset + items.length;
  return {
    ...(total !== undefined && { "X-Pagination-Total": String(total) }),
    ...(total !== undefined && items.length > 0 && next < total ? { "X-Pagination-Next": String(next) } : {}),
    ...(cursor !== undefined && { "X-Pagination-Cursor": cursor }),
  };
};
