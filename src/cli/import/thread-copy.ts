import type { AttemptSaver, CheckpointStorage } from "../../state/checkpoints/types.ts";
import { threadKey } from "../../state/checkpoints/thread-key.ts";
import type { Checkpoint, CheckpointMetadata, PendingWrite } from "@langchain/langgraph-checkpoint";
import type { BlobPlace, Source, SourceBlob, SourceCheckpoint, SourceKey } from "./source.ts";
import { checkpointKey, type Target } from "./target.ts";
import { ThreadValues } from "./values.ts";
import { ownField } from "../../platform/lib/names.ts";

export interface CopiedThread {
  /** `stopped`: incomplete; the next import continues. */
  outcome: "copied" | "already" | "skipped" | "stopped";
  reason?: string;
  checkpoints: number;
}

interface ThreadCopyOptions {
  source: Source;
  target: Target;
  checkpoints: CheckpointStorage;
  graphId: string | undefined;
  onCheckpoints: (count: number) => void;
  signal: AbortSignal;
}

/**
 * A page's size follows the bytes of the previous page, because a long conversation is long in each of its checkpoints.
 */
const PAGE_CHECKPOINTS_AT_MOST = 100;
const PAGE_BYTES = 16 * 1024 * 1024;
/** A parent is nearly always the previous checkpoint. */
const VERSIONS_KEPT = 200;

/** Replays checkpoints through this server's checkpointer. */
export const createThreadCopy = (options: ThreadCopyOptions) => {
  const { source, target, checkpoints, graphId, onCheckpoints, signal } = options;

  /** @throws ImportError for values that can't be imported */
  return async (sourceId: string): Promise<CopiedThread> => {
    const key = threadKey(sourceId);
    const keys = await source.keys(sourceId);
    const { record, checkpoints: existing } = await target.existing(key);
    const skipped = (reason: string): CopiedThread => ({ outcome: "skipped", reason, checkpoints: 0 });
    if (record !== undefined && record.importedId !== sourceId) {
      return skipped("this server has a thread with that id that was not imported from there");
    }
    const later = new Set<string>();
    const missing = keys
      .toReversed()
      .filter(({ checkpointNs, checkpointId, writes }) => {
        const stored = existing.get(checkpointKey(checkpointNs, checkpointId));
        // An earlier import stored the older checkpoints, too. A prune removed them here.
        if (stored === undefined) return !later.has(checkpointNs) && !later.has("");
        later.add(checkpointNs);
        return stored < writes;
      })
      .reverse();
    const known = new Set(keys.map((of) => checkpointKey(of.checkpointNs, of.checkpointId)));
    const wentOn = record !== undefined && (record.busy || [...existing.keys()].some((of) => !known.has(of)));
    if (missing.length === 0 && record !== undefined) return { outcome: "already", checkpoints: 0 };
    if (wentOn) return skipped("it went on here and there since it was imported");

    // A thread without a record is invisible and can't run. Any other thread may get a run meanwhile, and that run
    // wins.
    const saver = record === undefined ? checkpoints.saverForImport() : checkpoints.saverForIdleThread();
    const pages = createPages({ source, saver, sourceId, key, existing });
    let done = 0;
    let size = PAGE_CHECKPOINTS_AT_MOST / 10;
    while (done < missing.length) {
      if (signal.aborted) return { outcome: "stopped", checkpoints: done };
      const page = missing.slice(done, done + size);
      const bytes = await pages.copy(page);
      done += page.length;
      onCheckpoints(page.length);
      const fitting = Math.floor((page.length * PAGE_BYTES) / Math.max(bytes, 1));
      size = Math.max(1, Math.min(fitting, size * 2, PAGE_CHECKPOINTS_AT_MOST));
    }
    await target.finish({
      key,
      sourceId,
      graphId,
      firstTime: keys[0]?.time ?? null,
      lastTime: keys[keys.length - 1]?.time ?? null,
    });
    return { outcome: "copied", checkpoints: done };
  };
};

interface PageOptions {
  source: Source;
  saver: AttemptSaver;
  sourceId: string;
  key: string;
  existing: ReadonlyMap<string, number>;
}

const createPages = ({ source, saver, sourceId, key, existing }: PageOptions) => {
  const values = new ThreadValues();
  const versions = new Map<string, Record<string, number | string>>();
  const written = new Map<string, ReadonlySet<string>>();
  let loaded = new Map<string, unknown>();
  const at = (checkpointNs: string, checkpointId: string | null) => ({
    configurable: {
      thread_id: key,
      checkpoint_ns: checkpointNs,
      ...(checkpointId === null ? {} : { checkpoint_id: checkpointId }),
    },
  });
  const versionsOf = ({ checkpoint }: SourceCheckpoint) => checkpoint.channel_versions ?? {};
  const placesOf = (row: SourceCheckpoint): BlobPlace[] =>
    Object.entries(versionsOf(row)).map(([channel, version]) => ({
      checkpointNs: row.checkpointNs,
      channel,
      version: String(version),
    }));
  const noteVersions = (row: SourceCheckpoint): void => {
    versions.set(checkpointKey(row.checkpointNs, row.checkpointId), versionsOf(row));
    for (const oldest of versions.keys()) {
      if (versions.size <= VERSIONS_KEPT) break;
      versions.delete(oldest);
      written.delete(oldest);
    }
  };

  /** After a write, only a delta channel has no value. A node that never started may leave writes that start others. */
  const deltaChannelsOf = (parent: string, { channel_versions, channel_values }: Checkpoint): string[] =>
    [...(written.get(parent) ?? [])].filter(
      (channel) =>
        Object.hasOwn(channel_versions, channel) &&
        !Object.hasOwn(channel_values, channel) &&
        !channel.startsWith("branch:to:"),
    );

  /** Keeps values of the previous page. Returns the bytes read. */
  const load = async (rows: readonly SourceCheckpoint[]): Promise<number> => {
    const wanted = new Map(rows.flatMap(placesOf).map((place) => [placeKey(place), place]));
    const kept = new Map([...loaded].filter(([place]) => wanted.has(place)));
    const unread = [...wanted].filter(([place]) => !kept.has(place)).map(([, place]) => place);
    let bytes = 0;
    for (const blob of unread.length === 0 ? [] : await source.blobs(sourceId, unread)) {
      bytes += blob.blob?.length ?? 0;
      if (blob.type !== "empty") kept.set(placeKey(blob), await values.revive(blob));
    }
    loaded = kept;
    return bytes;
  };

  /**
   * Continues an interrupted import: maps the parent's serialized values to the objects stored here, so that later
   * versions share them.
   */
  const resumeFrom = async (checkpointNs: string, checkpointId: string): Promise<void> => {
    const tuple = await saver.getTuple(at(checkpointNs, checkpointId));
    const [row] = await source.checkpoints(sourceId, [
      { checkpointNs, checkpointId, time: null, writes: 0 } satisfies SourceKey,
    ]);
    if (tuple === undefined || row === undefined) return;
    noteVersions(row);
    for (const blob of await source.blobs(sourceId, placesOf(row))) {
      values.remember(blob, ownField(tuple.checkpoint.channel_values, blob.channel));
    }
  };

  const put = async (row: SourceCheckpoint): Promise<void> => {
    const { checkpointNs, checkpointId, parentId } = row;
    const own = versionsOf(row);
    const before = parentId === null ? undefined : versions.get(checkpointKey(checkpointNs, parentId));
    const channelValues = Object.fromEntries(
      placesOf(row)
        .filter((place) => loaded.has(placeKey(place)))
        .map((place) => [place.channel, loaded.get(placeKey(place))]),
    );
    const checkpoint = {
      versions_seen: {},
      ...row.checkpoint,
      channel_versions: own,
      channel_values: channelValues,
      id: checkpointId,
    } as unknown as Checkpoint;
    const changed = Object.fromEntries(
      Object.entries(own).filter(([channel, version]) => ownField(before, channel) !== version),
    );
    if (parentId !== null)
      saver.noteDeltaChannels(
        key,
        checkpointNs,
        deltaChannelsOf(checkpointKey(checkpointNs, parentId), checkpoint),
      );
    const metadata = (await values.reviveMetadata(row.metadata)) as CheckpointMetadata;
    await saver.put(at(checkpointNs, parentId), checkpoint, metadata, changed);
    noteVersions(row);
  };

  return {
    /** Returns the bytes of the source. */
    async copy(page: readonly SourceKey[]): Promise<number> {
      const rows = await source.checkpoints(sourceId, page);
      for (const { checkpointNs, parentId } of rows) {
        if (parentId === null) continue;
        const parent = checkpointKey(checkpointNs, parentId);
        if (!versions.has(parent) && existing.has(parent)) await resumeFrom(checkpointNs, parentId);
      }
      let bytes = await load(rows);
      const tasks = new Map<string, { checkpoint: string; taskId: string; writes: PendingWrite[] }>();
      for (const write of await source.writes(sourceId, page)) {
        bytes += write.blob?.length ?? 0;
        const checkpoint = checkpointKey(write.checkpointNs, write.checkpointId);
        const name = `${checkpoint}\n${write.taskId}`;
        const task = tasks.get(name) ?? { checkpoint, taskId: write.taskId, writes: [] };
        tasks.set(name, task);
        task.writes.push([write.channel, await values.revive(write)]);
      }
      const byCheckpoint = new Map<string, { taskId: string; writes: PendingWrite[] }[]>();
      for (const { checkpoint, ...task } of tasks.values()) {
        byCheckpoint.set(checkpoint, [...(byCheckpoint.get(checkpoint) ?? []), task]);
      }
      for (const row of rows) {
        const own = checkpointKey(row.checkpointNs, row.checkpointId);
        if (!existing.has(own)) await put(row);
        const tasksHere = byCheckpoint.get(own) ?? [];
        written.set(own, new Set(tasksHere.flatMap(({ writes }) => writes.map(([channel]) => channel))));
        for (const { taskId, writes } of tasksHere) {
          await saver.putWrites(at(row.checkpointNs, row.checkpointId), writes, taskId);
        }
      }
      await saver.flush();
      return bytes;
    },
  };
};

const placeKey = ({ checkpointNs, channel, version }: BlobPlace | SourceBlob): string =>
  JSON.stringify([checkpointNs, channel, version]);
