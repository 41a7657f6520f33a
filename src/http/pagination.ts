/** One page of a search, and how many there are in all. */
export interface Page<Item> {
  items: Item[];
  /** Of everything that matches, whatever the page; undefined behind a cursor. */
  total: number | undefined;
  offset: number;
  /** Where the next page begins; undefined on the last one, and where the order has no cursors. */
  cursor?: string | undefined;
}

/** The `total` of a page. `found` says how many match where the page has an item that could tell. */
export const totalOf = async (
  { cursor, offset }: { cursor?: string | undefined; offset: number },
  found: number | undefined,
  count: () => Promise<number>,
): Promise<number | undefined> =>
  cursor === undefined ? (found ?? (offset === 0 ? 0 : await count())) : undefined;

/** `X-Pagination-Next` is there only if there is a next page: the SDK stops where it is missing. */
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
