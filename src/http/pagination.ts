/** One page of a search, and how many there are in all. */
export interface Page<Item> {
  items: Item[];
  /** Of everything that matches, whatever the page. */
  total: number;
  offset: number;
}

/** `X-Pagination-Next` is there only if there is a next page: the SDK stops where it is missing. */
export const paginationHeaders = ({ items, total, offset }: Page<unknown>): Record<string, string> => {
  const next = offset + items.length;
  return {
    "X-Pagination-Total": String(total),
    ...(items.length > 0 && next < total ? { "X-Pagination-Next": String(next) } : {}),
  };
};
