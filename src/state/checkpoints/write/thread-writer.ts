import type { ChannelVersions } from "@langchain/langgraph-checkpoint";
import { ownField } from "../../../platform/lib/names.ts";
import type { QueueItem } from "./batch.ts";
import { ThreadLists } from "../lists/thread-lists.ts";
import type { NewShape } from "../rows/new-rows.ts";
import { NewContents } from "../rows/new-contents.ts";
import { ValueWriter } from "../rows/value-writer.ts";
import type { StoredValue } from "../rows/stored-value.ts";
import { WriteQueue, type WriteQueueOptions } from "./write-queue.ts";

export interface KnownCheckpoint {
  versions: ChannelVersions;
  channels: Map<string, StoredValue>;
  deltaChannels: readonly string[];
}

/** A parent is nearly always the previous checkpoint; subgraphs and forks need some more. */
const CHECKPOINTS_KNOWN_AT_MOST = 32;

export class ThreadWriter {
  readonly threadId: string;
  readonly threadLists: ThreadLists;
  readonly values: ValueWriter;
  readonly queue: WriteQueue;
  private readonly known = new Map<string, KnownCheckpoint>();
  private readonly writtenNs = new Set<string>();
  /** By namespace: what this writer has learned from others than checkpoints. */
  readonly deltaChannels = new Map<string, ReadonlySet<string>>();

  constructor(
    options: Omit<WriteQueueOptions, "threadLists"> & { valueCharactersAtMost: number | undefined },
  ) {
    this.threadId = options.threadId;
    const { database, valueCharactersAtMost = Infinity } = options;
    const contents = new NewContents(database.encryption);
    this.threadLists = new ThreadLists(valueCharactersAtMost, (text) => contents.withoutLargeStrings(text));
    this.values = new ValueWriter(this.threadLists, contents, valueCharactersAtMost);
    this.queue = new WriteQueue({ ...options, threadLists: this.threadLists });
  }

  /** Resolves on commit. */
  write(item: Pick<QueueItem, "checkpoint" | "writes">, shape?: NewShape): Promise<void> {
    const { checkpointNs } = (item.checkpoint ?? item.writes) as { checkpointNs: string };
    this.writtenNs.add(checkpointNs);
    const shapes = shape === undefined ? [] : [shape];
    const elements = this.threadLists.takeNewElements();
    const contents = this.values.contents.take();
    return this.queue.add({ ...item, elements, contents, shapes });
  }

  hasWritten(checkpointNs: string): boolean {
    return this.writtenNs.has(checkpointNs);
  }

  noteDeltaChannels(checkpointNs: string, channels: readonly string[]): void {
    const noted = this.deltaChannels.get(checkpointNs) ?? [];
    if (channels.length > 0) this.deltaChannels.set(checkpointNs, new Set([...noted, ...channels]));
  }

  recall(checkpointNs: string, checkpointId: string): KnownCheckpoint | undefined {
    return this.known.get(key(checkpointNs, checkpointId));
  }

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
