import type { ChannelVersions } from "@langchain/langgraph-checkpoint";
import { ownField } from "../../platform/lib/names.ts";
import { NewContents } from "./contents.ts";
import { WriteQueue, type WriteQueueOptions } from "./queue.ts";
import { ValueWriter, type StoredValue } from "./values.ts";
import type { QueueItem } from "./write.ts";

/** What a writer remembers of a checkpoint that it has read or stored. */
export interface KnownCheckpoint {
  versions: ChannelVersions;
  channels: Map<string, StoredValue>;
  deltaChannels: readonly string[];
}

/** A parent is nearly always the previous checkpoint; subgraphs and forks need some more. */
const CHECKPOINTS_KNOWN_AT_MOST = 32;

/** Writes the checkpoints of one thread, and knows what the thread has. */
export class ThreadWriter {
  readonly contents: NewContents;
  readonly values: ValueWriter;
  readonly queue: WriteQueue;
  private readonly known = new Map<string, KnownCheckpoint>();
  private readonly writtenNs = new Set<string>();
  /** By namespace: what this writer has learned from others than checkpoints. */
  readonly deltaChannels = new Map<string, ReadonlySet<string>>();

  constructor(
    readonly threadId: string,
    options: Omit<WriteQueueOptions, "threadId">,
    valueCharactersAtMost: number | undefined,
  ) {
    this.contents = new NewContents(options.database.encryption);
    this.values = new ValueWriter(this.contents, valueCharactersAtMost);
    this.queue = new WriteQueue({ ...options, threadId });
  }

  /** Resolves on commit. */
  write(item: Omit<QueueItem, "contents">): Promise<void> {
    const { checkpointNs } = (item.checkpoint ?? item.writes) as { checkpointNs: string };
    this.writtenNs.add(checkpointNs);
    return this.queue.add({ ...item, contents: this.contents.take() });
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
    const [oldest] = this.known.keys();
    if (this.known.size > CHECKPOINTS_KNOWN_AT_MOST) this.known.delete(oldest!);
  }
}

const key = (checkpointNs: string, checkpointId: string): string => `${checkpointNs}\n${checkpointId}`;
