import { newId } from "../lib/ids.ts";
import type { ObjectStore } from "./object-store.ts";
import type { Encryption } from "../encryption/encryption.ts";

/** The id of one thread, or of several. */
export type Threads = string | readonly string[];

export interface Queryable {
  /** Queries return encrypted `json` and `jsonb` as `EncryptedJson`; `encryption` decrypts rows. */
  readonly encryption: Encryption;
  /** Where large contents are. Undefined: in the database. */
  readonly objects?: ObjectStore | undefined;
  /** `threads`: whose rows the statement reads or writes, where the text does not compare a `thread_id`. */
  query<Row>(text: string, values?: unknown[], options?: { threads?: Threads }): Promise<Row[]>;
  /** Returns the number of the thread's part. Only a distributed database has parts. */
  readonly partOf?: (threadId: string) => number;
}

/** The items, by the part of their thread: a statement that stores rows of several threads reaches one part. */
export const byPart = <Item>(
  { partOf }: Pick<Queryable, "partOf">,
  items: readonly Item[],
  threadOf: (item: Item) => string,
): (readonly Item[])[] => {
  if (partOf === undefined) return items.length === 0 ? [] : [items];
  const parts = new Map<number, Item[]>();
  for (const item of items) {
    const part = partOf(threadOf(item));
    const found = parts.get(part);
    if (found === undefined) parts.set(part, [item]);
    else found.push(item);
  }
  return [...parts.values()];
};

/** An id for a thread in the part of another: a statement that copies rows reaches one part. */
export const idBeside = ({ partOf }: Pick<Queryable, "partOf">, threadId: string): string => {
  let id = newId();
  while (partOf !== undefined && partOf(id) !== partOf(threadId)) id = newId();
  return id;
};
