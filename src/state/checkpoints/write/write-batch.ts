import type { Database } from "../../../platform/database/database.ts";
import { ELEMENTS_PER_ROW_AT_MOST, type Batch } from "../rows/new-rows.ts";
import type { AttemptSource, Fence } from "./fences.ts";
import type { BatchSource } from "./write-parameters.ts";
import {
  WRITE_AS_ATTEMPT,
  WRITE_FREELY,
  WRITE_WHILE_IDLE,
  WRITE_WHILE_UNCHANGED,
  type Answer,
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
  const write = async (): Promise<readonly (Answer | undefined)[]> => {
    switch (fence?.kind) {
      case "attempt":
        return WRITE_AS_ATTEMPT.query(database, { ...source, ...fence, last });
      case "idle-thread":
        return WRITE_WHILE_IDLE.query(database, source);
      case "unchanged-thread":
        return WRITE_WHILE_UNCHANGED.query(database, { ...source, ...fence });
      case undefined:
        return WRITE_FREELY.query(database, source);
    }
  };
  const [answer] = await write();
  // This statement has raised the thread's version.
  if (fence?.kind === "unchanged-thread" && answer?.version) fence.threadVersion = answer.version;
  return answer?.held === true;
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
