import type { ChannelVersions } from "@langchain/langgraph-checkpoint";
import { ownField } from "../../../platform/lib/names.ts";
import type { QueueItem } from "./batch.ts";
import { ThreadLists } from "../lists/thread-lists.ts";
import { idAfter } from "./id-order.ts";
import type { NewShape } from "../rows/new-rows.ts";
import { ValueWriter } from "../rows/value-writer.ts";
import type { StoredValue } from "../rows/stored-value.ts";
import { WriteQueue, type WriteQueueOptions } from "./write-queue.ts";

/** Knowledge of a read or written checkpoint: enough to store the next one by difference. */
export interface KnownCheckpoint {
  versions: ChannelVersions;
  channels: Map<string, StoredValue>;
}

/** A parent is nearly always the previous checkpoint; subgraphs and forks need some more. */
const CHECKPOINTS_KNOWN_AT_MOST = 32;

/** The knowledge of one saver about one thread, and its queue. */
export class ThreadWriter {
  readonly threadId: string;
  readonly threadLists: ThreadLists;
  readonly values: ValueWriter;
  readonly queue: WriteQueue;
  private readonly known = new Map<string, KnownCheckpoint>();
  private readonly writtenNs = new Set<string>();
  /** Of the thread, in any namespace: ids of a subgraph are compared with those of its parent. */
  private newestId = "";

  constructor(
    options: Omit<WriteQueueOptions, "threadLists"> & { valueCharactersAtMost: number | undefined },
  ) {
    this.threadId = options.threadId;
    const { database, valueCharactersAtMost = Infinity } = options;
    this.threadLists = new ThreadLists(valueCharactersAtMost);
    this.values = new ValueWriter(this.threadLists, database.cipher, valueCharactersAtMost);
    this.queue = new WriteQueue({ ...options, threadLists: this.threadLists });
  }

  /** Queues an item with its new shape, elements and contents. Resolves when the item is committed. */
  write(item: Pick<QueueItem, "checkpoint" | "writes">, shape?: NewShape): Promise<void> {
    const { checkpointNs } = (item.checkpoint ?? item.writes) as { checkpointNs: string };
    this.writtenNs.add(checkpointNs);
    const shapes = shape === undefined ? [] : [shape];
    const elements = this.threadLists.takeNewElements();
    const contents = this.values.takeNewContents();
    return this.queue.add({ ...item, elements, contents, shapes });
  }

  /** Whether the writer got a checkpoint of the namespace, or writes to one. */
  hasWritten(checkpointNs: string): boolean {
    return this.writtenNs.has(checkpointNs);
  }

  /** Records an existing checkpoint: ids of new ones follow it. */
  learnId(id: string): void {
    if (id > this.newestId) this.newestId = id;
  }

  /** The id of a new checkpoint for which LangGraph made `id`. */
  idAfterAll(id: string): string {
    this.newestId = idAfter(this.newestId, id);
    return this.newestId;
  }

  recall(checkpointNs: string, checkpointId: string): KnownCheckpoint | undefined {
    return this.known.get(key(checkpointNs, checkpointId));
  }

  /** Whether a known checkpoint of the namespace has this version of the channel. */
  knowsVersion(checkpointNs: string, channel: string, version: number | string): boolean {
    for (const [id, { versions, channels }] of this.known) {
      if (
        id.startsWith(`${checkpointNs}\n`) &&
        ownField(versions, channel) === version &&
        channels.has(channel)
      )
        return true;
    }
    return false;
  }

  learn(checkpointNs: string, checkpointId: string, checkpoint: KnownCheckpoint): void {
    this.known.set(key(checkpointNs, checkpointId), checkpoint);
    if (this.known.size <= CHECKPOINTS_KNOWN_AT_MOST) return;
    for (const oldest of this.known.keys()) {
      this.known.delete(oldest);
      break;
    }
  }
}

const key = (checkpointNs: string, checkpointId: string): string => `${checkpointNs}\n${checkpointId}`;
