import type { Database } from "../../../platform/database/database.ts";
import { LARGE_CHARACTERS, type GroupedStatement } from "../../../platform/database/grouping.ts";
import { ELEMENTS_PER_ROW_AT_MOST, type Batch } from "../rows/new-rows.ts";
import type { AttemptSource, Fence } from "./fences.ts";
import {
  WRITE_AS_ATTEMPT,
  WRITE_FREELY,
  WRITE_WHILE_IDLE,
  WRITE_WHILE_UNCHANGED,
  type BatchSource,
  type Held,
} from "./write-statement.ts";

interface BatchOptions {
  threadId: string;
  fence: Fence | undefined;
  /**
   * A crash may lose the last commits, each as a whole. The statement that ends a run waits until all earlier commits
   * are on the disk.
   */
  asynchronous: boolean;
  last?: AttemptSource["last"];
}

/**
 * False: the fence doesn't hold, and nothing is stored. Throws a unique violation of `checkpoint_elements_pkey` if
 * another writer took one of the positions.
 */
export const writeBatch = async (
  database: Database,
  { threadId, fence, asynchronous, last }: BatchOptions,
  batch: Batch,
): Promise<boolean> => {
  const elements = batch.elements.flatMap(rowsOf);
  const source: BatchSource = { ...batch, elements, threadId, asynchronous };
  const write = async (): Promise<Held | undefined> => {
    switch (fence?.kind) {
      case "attempt":
        return await database.grouped(AS_ATTEMPT, { ...source, ...fence, last });
      case "idle-thread":
        return (await WRITE_WHILE_IDLE.query<Held>(database, [source]))[0];
      case "unchanged-thread":
        return (await WRITE_WHILE_UNCHANGED.query<Held>(database, [{ ...source, ...fence }]))[0];
      case undefined:
        return (await WRITE_FREELY.query<Held>(database, [source]))[0];
    }
  };
  const held = await write();
  // This statement has raised the thread's version.
  if (fence?.kind === "unchanged-thread" && held?.version) fence.threadVersion = held.version;
  return held !== undefined;
};

/** Loops, because callbacks would cost a call per text. Ends early, because a batch may have millions of elements. */
const isLarge = ({ checkpoints, elements, contents, writes }: Batch): boolean => {
  let characters = 0;
  for (const { record, metadata } of checkpoints) characters += record.length + metadata.length;
  for (const { text } of contents) characters += text.length;
  for (const task of writes) characters += task.writes.length;
  for (const { texts } of elements) {
    for (const text of texts) {
      characters += text.length;
      if (characters > LARGE_CHARACTERS) return true;
    }
  }
  return characters > LARGE_CHARACTERS;
};

const AS_ATTEMPT: GroupedStatement<BatchSource & AttemptSource, Held> = {
  threadOf: ({ threadId }) => threadId,
  isSeparate: isLarge,
  query: (queryable, all) => WRITE_AS_ATTEMPT.query(queryable, all),
};

/** Limits rows, because a read fetches whole rows. */
const rowsOf = (stretch: Batch["elements"][number]): Batch["elements"] => {
  if (stretch.texts.length <= ELEMENTS_PER_ROW_AT_MOST) return [stretch];
  const rows: Batch["elements"] = [];
  for (let start = 0; start < stretch.texts.length; start += ELEMENTS_PER_ROW_AT_MOST) {
    const texts = stretch.texts.slice(start, start + ELEMENTS_PER_ROW_AT_MOST);
    rows.push({ list: stretch.list, position: stretch.position + start, texts });
  }
  return rows;
};
