import type { ValueClasses } from "../values/classes.ts";
import { deleteThread } from "./upkeep.ts";
import { threadKey } from "./thread-key.ts";
import type { ThreadWriter } from "./writer.ts";
import { ThreadSaver, type SaverParts } from "./saver.ts";

/** For more threads, a write reads its parent first. */
const WRITERS_AT_MOST = 16;

/** Every call waits for the commit. */
export class UnfencedSaver extends ThreadSaver {
  private readonly writers = new Map<string, ThreadWriter>();

  constructor(protected override readonly parts: SaverParts) {
    super(parts, { metadata: {}, runId: null, waits: true });
  }

  /** Every read gets a new writer, which remembers only the checkpoint in use. */
  protected override writer(key: string, mayBeNew: boolean): ThreadWriter {
    const before = this.writers.get(key);
    if (before !== undefined && !before.queue.failed.aborted && (!mayBeNew || before.queue.isBusyWith()))
      return before;
    const writer = this.newWriter(key, { fence: undefined, asynchronous: false });
    this.writers.delete(key);
    this.writers.set(key, writer);
    for (const [oldest, { queue }] of this.writers) {
      if (this.writers.size <= WRITERS_AT_MOST) break;
      if (!queue.isBusyWith()) this.writers.delete(oldest);
    }
    return writer;
  }

  override withClasses(classes: ValueClasses): UnfencedSaver {
    const saver = new UnfencedSaver(this.parts);
    saver.classes = classes;
    saver.filter = this.filter;
    return saver;
  }

  override async deleteThread(threadId: string): Promise<void> {
    const key = threadKey(threadId);
    await deleteThread(this.parts.database, key);
    this.writers.delete(key);
  }
}
