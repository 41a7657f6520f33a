/**
 * Which of the writes that wait at a checkpoint its graph can take.
 *
 * LangGraph stores what a task or a command writes before its reducers have seen it, and applies it whenever the
 * checkpoint is read, by a run or for a state. If a reducer throws at it (a message that is none, two values where there
 * is room for one), every read throws, for good. So such writes are left out where a checkpoint is read: its own values
 * are the thread's last good state.
 */

import type {
  BaseCheckpointSaver,
  CheckpointPendingWrite,
  CheckpointTuple,
} from "@langchain/langgraph-checkpoint";
import { isPassing } from "../platform/database/passing-faults.ts";
import { sqlState, StateStorageError } from "../platform/domain/errors.ts";
import { makesSnapshots, type RunnableGraph } from "./runnable-graph.ts";

interface JudgedWrites {
  /** Those that are left. */
  writes: CheckpointPendingWrite[];
  /** The tasks whose writes were refused, each with what a reducer has thrown. */
  refused: ReadonlyMap<string, unknown>;
}

/** Task id of what a command writes: its updates, and where it goes. */
const COMMAND = "00000000-0000-0000-0000-000000000000";
/** The node of a `StateGraph` that takes the input from the channel of this name. */
const INPUT = "__start__";
const ERROR = "__error__";
/** Writes that say something of a task, and that no reducer ever sees. */
const NOTES: ReadonlySet<string> = new Set([ERROR, "__interrupt__", "__scheduled__", "__resume__"]);
/** Each try applies all writes to the whole state: what is still unknown after so many is refused. */
const TRIES_AT_MOST = 16;

const isNote = ([, channel]: CheckpointPendingWrite): boolean => NOTES.has(channel);

/** A checkpoint of the root graph, given anew each time: applying writes changes it, and a reducer may, too. */
type Read = () => Promise<CheckpointTuple>;

/**
 * Nearly always there is nothing to judge: a thread at rest has no pending writes, and one that waits for a person has
 * notes only.
 */
const judge = async (
  graph: RunnableGraph,
  all: CheckpointPendingWrite[],
  read: Read,
): Promise<JudgedWrites> => {
  if (all.every(isNote) || !makesSnapshots(graph)) return { writes: all, refused: new Map() };
  let tries = 0;
  /** What is thrown at these writes; undefined if they are taken. */
  const objectionTo = async (writes: CheckpointPendingWrite[]): Promise<unknown> => {
    const saved = { ...(await read()), pendingWrites: writes };
    tries += 1;
    try {
      await graph._prepareStateSnapshot({ config: saved.config, saved, applyPendingWrites: true });
      return undefined;
    } catch (error) {
      // A value that is put together from earlier checkpoints has to be read: that this fails is no reducer's word.
      if (isPassing(error) || sqlState(error) !== undefined || error instanceof StateStorageError)
        throw error;
      return error ?? new Error("The graph does not say why.");
    }
  };
  const objection = await objectionTo(all);
  if (objection === undefined) return { writes: all, refused: new Map() };

  const taken = new Set(all.filter(isNote));
  const refused = new Map<string, unknown>();
  for (const [taskId, written] of byTask(all)) {
    if (written.length === 0) continue;
    const error =
      tries < TRIES_AT_MOST
        ? await objectionTo(all.filter((write) => taken.has(write) || written.includes(write)))
        : objection;
    if (error !== undefined) refused.set(taskId, error);
    else for (const write of written) taken.add(write);
  }
  return { writes: all.filter((write) => taken.has(write)), refused };
};

/** What a task wrote is taken or refused as a whole. A command comes first: the tasks work on what it has updated. */
const byTask = (writes: readonly CheckpointPendingWrite[]): Map<string, CheckpointPendingWrite[]> => {
  const tasks = new Map<string, CheckpointPendingWrite[]>([[COMMAND, []]]);
  for (const write of writes) {
    if (isNote(write)) continue;
    const task = tasks.get(write[0]);
    if (task === undefined) tasks.set(write[0], [write]);
    else task.push(write);
  }
  return tasks;
};

/**
 * The checkpoint as a run or an update of the state is to go on from it: without the writes that were refused. An input
 * that was refused is gone with them; it would be tried again beside whatever comes next, and fail that, too.
 */
export const withoutRefused = async (
  graph: RunnableGraph,
  tuple: CheckpointTuple,
  read: Read,
): Promise<CheckpointTuple> => {
  const { writes, refused } = await judge(graph, tuple.pendingWrites ?? [], read);
  if (refused.size === 0) return tuple;
  const { [INPUT]: _, ...others } = tuple.checkpoint.channel_values;
  const values = (await isInputRefused(graph, refused, read)) ? others : tuple.checkpoint.channel_values;
  return { ...tuple, pendingWrites: writes, checkpoint: { ...tuple.checkpoint, channel_values: values } };
};

const isInputRefused = async (
  graph: RunnableGraph,
  refused: ReadonlyMap<string, unknown>,
  read: Read,
): Promise<boolean> => {
  if (!makesSnapshots(graph)) return false;
  const saved = { ...(await read()), pendingWrites: [] };
  const due = (await graph._prepareStateSnapshot({
    config: saved.config,
    saved,
    applyPendingWrites: false,
  })) as {
    tasks: { id: string; name: string }[];
  };
  return due.tasks.some(({ id, name }) => name === INPUT && refused.has(id));
};

/** The checkpoint as it is to be shown: the tasks whose writes were refused have failed, and say why. */
export const withErrors = async (
  graph: RunnableGraph,
  tuple: CheckpointTuple,
  read: Read,
): Promise<CheckpointTuple> => {
  const { writes, refused } = await judge(graph, tuple.pendingWrites ?? [], read);
  const failed = new Set(writes.filter(([, channel]) => channel === ERROR).map(([taskId]) => taskId));
  const errors = [...refused]
    .filter(([taskId]) => !failed.has(taskId))
    .map(([taskId, error]): CheckpointPendingWrite => [taskId, ERROR, describe(error)]);
  return { ...tuple, pendingWrites: [...writes, ...errors] };
};

/** As LangGraph keeps what a task has thrown. */
const describe = (error: unknown): { name: string; message: string } =>
  error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: "Error", message: String(error) };

/**
 * After a run has failed: stores with the tasks of its last step whose writes were refused that they have failed, as
 * LangGraph does it for a task that throws. A history shows it, which applies no pending writes. Rejects with what
 * `saver` does.
 */
export const noteRefused = async (
  graph: RunnableGraph,
  saver: BaseCheckpointSaver & { filter: unknown },
  threadId: string,
): Promise<void> => {
  let refused: JudgedWrites["refused"] = new Map();
  saver.filter = async (tuple: CheckpointTuple, read: Read): Promise<CheckpointTuple> => {
    ({ refused } = await judge(graph, tuple.pendingWrites ?? [], read));
    return tuple;
  };
  const tuple = await saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns: "" } });
  for (const [taskId, error] of refused) {
    if (tuple === undefined || taskId === COMMAND) continue;
    await saver.putWrites(tuple.config, [[ERROR, describe(error)]], taskId);
  }
};
