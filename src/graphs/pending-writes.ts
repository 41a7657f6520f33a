/**
 * LangGraph stores pending writes before reducing them, and applies them at each read. Reads leave out writes that a
 * reducer refuses, because the thread would otherwise be unreadable forever.
 */

import type {
  BaseCheckpointSaver,
  CheckpointPendingWrite,
  CheckpointTuple,
} from "@langchain/langgraph-checkpoint";
import { isPassing } from "../platform/database/passing-faults.ts";
import { sqlState, StateStorageError } from "../platform/domain/errors.ts";
import { stateOf, type RunnableGraph } from "./runnable-graph.ts";

interface JudgedWrites {
  writes: CheckpointPendingWrite[];
  refused: ReadonlyMap<string, unknown>;
}

/** LangGraph's task id for the writes of a command (updates and `goto`). */
const COMMAND = "00000000-0000-0000-0000-000000000000";
/** The `StateGraph` node that reads the input. */
const INPUT = "__start__";
const ERROR = "__error__";
const INTERRUPT = "__interrupt__";
/** Notes about a task, which no reducer sees. */
const NOTES: ReadonlySet<string> = new Set([
  ...[ERROR, "__error_source_node__"],
  ...[INTERRUPT, "__resume__", "__scheduled__"],
]);
/** Each try applies all writes to the whole state. After these tries, undecided tasks are refused. */
const TRIES_AT_MOST = 16;

const isNote = ([, channel]: CheckpointPendingWrite): boolean => NOTES.has(channel);

/** Tasks whose writes wait for the end of the step. `getState` still lists their answered interrupts. */
export const finishedTasks = (writes: readonly { taskId: string; channel: string }[]): ReadonlySet<string> =>
  new Set(writes.filter(({ channel }) => !NOTES.has(channel)).map(({ taskId }) => taskId));

/** The checkpoint for a read that asks what waits for an answer. */
export const withoutAnswered = (tuple: CheckpointTuple): CheckpointTuple => {
  const writes = tuple.pendingWrites ?? [];
  const finished = finishedTasks(writes.map(([taskId, channel]) => ({ taskId, channel })));
  const pendingWrites = writes.filter(([taskId, channel]) => channel !== INTERRUPT || !finished.has(taskId));
  return { ...tuple, pendingWrites };
};

/** Reads the root checkpoint again each time, because applying writes changes it. */
type Read = () => Promise<CheckpointTuple>;

const judge = async (
  graph: RunnableGraph,
  all: CheckpointPendingWrite[],
  read: Read,
): Promise<JudgedWrites> => {
  if (all.every(isNote)) return { writes: all, refused: new Map() };
  let tries = 0;
  /** Undefined if they are accepted. */
  const objectionTo = async (writes: CheckpointPendingWrite[]): Promise<unknown> => {
    const saved = { ...(await read()), pendingWrites: writes };
    tries += 1;
    try {
      await stateOf(graph, saved, { appliesWrites: true });
      return undefined;
    } catch (error) {
      // Errors of the database while reading earlier checkpoints are not a reducer's.
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

/** A task's writes are accepted or refused together. A command comes first, because tasks see its updates. */
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

/** The checkpoint for the next run or state update. Drops a refused input, because it would fail the next run, too. */
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
  const saved = { ...(await read()), pendingWrites: [] };
  const due = await stateOf(graph, saved, { appliesWrites: false });
  return due.tasks.some(({ id, name }) => name === INPUT && refused.has(id));
};

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

/** LangGraph's form of a task's error. */
const describe = (error: unknown): { name: string; message: string } =>
  error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: "Error", message: String(error) };

/** Stores the errors of refused writes, because history shows only stored errors. */
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
