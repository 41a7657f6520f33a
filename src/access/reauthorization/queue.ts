/** Works on at most `atOnce` items at a time, and on at most one of each owner. */
interface Queue<Item> {
  add(item: Item): void;
  clear(): void;
}

interface QueueOptions<Item> {
  ownerOf(item: Item): string;
  /** Resolves when the next item may start; never rejects. */
  work(item: Item): Promise<void>;
  atOnce: number;
}

/** Owners take turns, so an owner's many or hanging items delay no other. */
export const createQueue = <Item>({ ownerOf, work, atOnce }: QueueOptions<Item>): Queue<Item> => {
  /** In the order of the owners' turns. */
  const waiting = new Map<string, Item[]>();
  /** The waiting items of each owner that has an item at work. */
  const busy = new Map<string, Item[]>();

  const finish = (owner: string): void => {
    const rest = busy.get(owner);
    busy.delete(owner);
    if (rest !== undefined && rest.length > 0) waiting.set(owner, rest);
    next();
  };
  const next = (): void => {
    for (const [owner, items] of waiting) {
      if (busy.size >= atOnce) return;
      waiting.delete(owner);
      const item = items.shift();
      if (item === undefined) continue;
      busy.set(owner, items);
      void work(item).finally(() => finish(owner));
    }
  };
  return {
    add(item) {
      const owner = ownerOf(item);
      const items = busy.get(owner) ?? waiting.get(owner);
      if (items !== undefined) return void items.push(item);
      waiting.set(owner, [item]);
      next();
    },
    clear() {
      waiting.clear();
      for (const items of busy.values()) items.length = 0;
    },
  };
};
