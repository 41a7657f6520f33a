import type { Database } from "../database/database.ts";
import type { ElementCache, ThreadElements } from "./element-cache.ts";
import { readParts, readTuple, type CheckpointRow, type ReadParts } from "./repository.ts";
import { toSegments, type ValueRecord } from "./values.ts";

/** A row with its texts parsed; everything that its records refer to is in `elements`. */
export interface LoadedCheckpoint {
  row: CheckpointRow;
  body: CheckpointBody;
  channels: Array<[channel: string, record: ValueRecord]>;
  writes: LoadedWrite[];
  elements: ThreadElements;
}

export interface LoadedWrite {
  taskId: string;
  index: number;
  channel: string;
  record: ValueRecord;
}

/** What a checkpoint holds beside its values. */
export interface CheckpointBody {
  v: number;
  ts: string;
  channel_versions: Record<string, number | string>;
  versions_seen: Record<string, Record<string, number | string>>;
}

export interface CheckpointPlace {
  threadId: string;
  checkpointNs: string;
  /** Undefined: the newest. */
  checkpointId: string | undefined;
}

/** A second fetch is only needed if ranges that are remembered apart had to be joined. */
const FETCHES_AT_MOST = 3;

/** Reads checkpoints with what they refer to; the process's memory saves what it already holds. */
export class CheckpointReader {
  constructor(
    private readonly database: Database,
    private readonly cache: ElementCache,
  ) {}

  /** One checkpoint, in one statement. */
  async read(place: CheckpointPlace): Promise<LoadedCheckpoint | undefined> {
    const elements = this.cache.thread(place.threadId);
    const found = await readTuple(this.database, place, elements.coverage());
    if (found === undefined) return undefined;
    addParts(elements, found);
    const loaded = parseRow(found.row, elements);
    await this.complete([loaded]);
    return loaded;
  }

  /** Rows that were read without what they refer to: one more statement for each thread among them, at most. */
  async load(rows: readonly CheckpointRow[]): Promise<LoadedCheckpoint[]> {
    const loaded = rows.map((row) => parseRow(row, this.cache.thread(row.thread_id)));
    for (const threadId of new Set(rows.map((row) => row.thread_id))) {
      await this.complete(loaded.filter(({ row }) => row.thread_id === threadId));
    }
    return loaded;
  }

  /** Fetches what is missing: usually nothing after `read`, all in one statement after `load`. */
  private async complete(loaded: readonly LoadedCheckpoint[]): Promise<void> {
    const [first] = loaded;
    if (first === undefined) return;
    const { elements } = first;
    for (let round = 0; round < FETCHES_AT_MOST; round++) {
      const wanted = new Map<number, { from: number; to: number }>();
      const contents = new Set<string>();
      for (const record of loaded.flatMap(recordsOf)) {
        if (record.c !== undefined && !elements.contents.has(record.c)) contents.add(record.c);
        for (const { list, from, to } of (record.l ?? []).flatMap(toSegments)) {
          if (elements.has(list, from, to)) continue;
          const range = wanted.get(list);
          wanted.set(list, { from: Math.min(range?.from ?? from, from), to: Math.max(range?.to ?? to, to) });
        }
      }
      if (wanted.size === 0 && contents.size === 0) return;
      const parts = await readParts(this.database, first.row.thread_id, {
        lists: [...wanted.keys()],
        starts: [...wanted.values()].map(({ from }) => from),
        ends: [...wanted.values()].map(({ to }) => to),
        contents: [...contents],
      });
      addParts(elements, parts);
    }
  }
}

const recordsOf = (loaded: LoadedCheckpoint): ValueRecord[] => [
  ...loaded.channels.map(([, record]) => record),
  ...loaded.writes.map(({ record }) => record),
];

const addParts = (elements: ThreadElements, { runs, contents }: ReadParts): void => {
  for (const run of runs) elements.addRun(run);
  for (const { hash, text } of contents) elements.addContent(hash, text);
};

const parseRow = (row: CheckpointRow, elements: ThreadElements): LoadedCheckpoint => ({
  row,
  body: JSON.parse(row.body) as CheckpointBody,
  channels: Object.entries(JSON.parse(row.channels) as Record<string, ValueRecord>),
  writes: parseWrites(row),
  elements,
});

/** The writes of the tasks, those of several runs put together as `merge_writes` in the database does it. */
const parseWrites = ({ writes }: CheckpointRow): LoadedWrite[] => {
  const tasks = new Map<string, Map<number, LoadedWrite>>();
  for (const [taskId, text] of writes) {
    let task = tasks.get(taskId);
    if (task === undefined) tasks.set(taskId, (task = new Map<number, LoadedWrite>()));
    for (const [index, channel, record] of JSON.parse(text) as Array<[number, string, ValueRecord]>) {
      if (index < 0 || !task.has(index)) task.set(index, { taskId, index, channel, record });
    }
  }
  return [...tasks.values()].flatMap((task) =>
    [...task.values()].sort((one, other) => one.index - other.index),
  );
};
