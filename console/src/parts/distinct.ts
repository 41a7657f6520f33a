/**
 * What several pages hold, each thing once, where it stood first and as it was told last: while pages are read one after the other, what
 * changes moves in the list, and stands on two of them.
 */
export const distinct = <Item>(items: Iterable<Item>, idOf: (item: Item) => string): Item[] => [
  ...new Map([...items].map((item) => [idOf(item), item])).values(),
];
