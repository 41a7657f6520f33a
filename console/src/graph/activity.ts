import type { Interrupt, ThreadTask } from "@langchain/langgraph-sdk";
import type { CheckpointRef, StoredCheckpoint } from "../parts/checkpoints.ts";
import { groupsAround } from "./drawing.ts";

export type Outcome = "running" | "done" | "failed" | "waiting" | "stopped";

/** One time that a node ran. */
export interface Execution {
  taskId: string;
  /** As it is drawn: `investigate:search`. */
  node: string;
  /** Of the graph that the node belongs to, as checkpoints name it. */
  namespace: string;
  outcome: Outcome;
  /** The state that it began with; undefined of a task that is known from the stream alone, until its run has ended. */
  checkpoint: CheckpointRef | undefined;
  step: number | undefined;
  /** Milliseconds since 1970. */
  startedAt: number | undefined;
  /** Milliseconds; undefined if nobody knows: it has not ended, or somebody was waited for. */
  durationMs: number | undefined;
  /** False: other tasks ran in the same step, and it took that long or less. */
  isExact: boolean;
  /** What it was given, where the stream has live. */
  input?: unknown;
  result: unknown;
  error: string | undefined;
  interrupts: readonly Interrupt[];
  /** Whether it is of the newest checkpoint of its graph: as long as that one runs, so does this. */
  isOfHead: boolean;
}

/**
 * The drawn id of a node: its path through the subgraphs, without the ids of tasks, and without the numbers that tell the graphs
 * apart which one node has called.
 */
export const drawnIdOf = (namespace: readonly string[], node: string): string =>
  [
    ...namespace.filter((segment) => !/^\d+$/.test(segment)).map((segment) => segment.split(":", 1)[0]),
    node,
  ].join(":");

const timeOf = (iso: string | null | undefined): number | undefined => {
  const time = Date.parse(iso ?? "");
  return Number.isNaN(time) ? undefined : time;
};

const outcomeOf = (task: ThreadTask, isFollowed: boolean): Outcome => {
  if (isFollowed) return "done";
  if (task.error !== null) return "failed";
  if (task.result != null) return "done";
  return task.interrupts.length > 0 ? "waiting" : "stopped";
};

/** What checkpoints of one namespace tell of the nodes that ran after them, the newest first. */
export const executionsIn = (states: readonly StoredCheckpoint[], namespace: string): Execution[] => {
  const path = namespace === "" ? [] : namespace.split("|");
  /** By the id of a checkpoint: when the step behind it was stored, for the first time. */
  const followed = new Map<string, number | undefined>();
  for (const { parent_checkpoint: parent, metadata, created_at } of states) {
    if (parent != null && metadata?.source === "loop") followed.set(parent.checkpoint_id, timeOf(created_at));
  }
  return states.flatMap(({ checkpoint, tasks = [], metadata, created_at }, index) => {
    const id = checkpoint?.checkpoint_id ?? "";
    const startedAt = timeOf(created_at);
    const endedAt = followed.get(id);
    return tasks
      .filter(({ name }) => name !== "__start__" && name !== "")
      .map((task): Execution => {
        const isKnown = startedAt !== undefined && endedAt !== undefined && task.interrupts.length === 0;
        return {
          taskId: task.id,
          node: drawnIdOf(path, task.name),
          namespace,
          outcome: outcomeOf(task, followed.has(id)),
          checkpoint: checkpoint ?? undefined,
          step: metadata?.step,
          startedAt,
          durationMs: isKnown ? Math.max(0, endedAt - startedAt) : undefined,
          isExact: tasks.length === 1,
          result: task.result,
          error: task.error ?? undefined,
          interrupts: task.interrupts,
          isOfHead: index === 0,
        };
      });
  });
};

/** Where the checkpoints of the graph are that a task has called. */
export const namespaceBelow = ({ namespace, node, taskId }: Execution): string => {
  const own = `${node.slice(node.lastIndexOf(":") + 1)}:${taskId}`;
  return namespace === "" ? own : `${namespace}|${own}`;
};

/** What is stored of a run that goes on, live as what it is: the stream has not live of what began before somebody looked. */
const markRunning = (stored: readonly Execution[]): Execution[] => {
  const running = new Set([""]);
  return stored.map((execution) => {
    const { outcome, isOfHead, namespace } = execution;
    const isOpen = outcome === "stopped" || outcome === "waiting";
    if (!isOpen || !isOfHead || !running.has(namespace)) return execution;
    running.add(namespaceBelow(execution));
    return { ...execution, outcome: "running" };
  });
};

/**
 * Both, each task once, the newest first: what the stream tells of times is exact, what is stored knows of errors and states.
 * @param stored what ran in a graph stands before what ran in graphs that it has called
 */
export const mergeExecutions = (
  stored: readonly Execution[],
  { tasks, isRunning }: { tasks: ReadonlyMap<string, Execution>; isRunning: boolean },
): Execution[] => {
  const known = new Set(stored.map(({ taskId }) => taskId));
  const both = (isRunning ? markRunning(stored) : stored).map((execution): Execution => {
    const live = tasks.get(execution.taskId);
    if (live === undefined) return execution;
    const isOpen = execution.outcome === "stopped" || execution.outcome === "running";
    return {
      ...execution,
      input: live.input,
      startedAt: live.startedAt ?? execution.startedAt,
      ...(live.durationMs === undefined ? {} : { durationMs: live.durationMs, isExact: true }),
      // A task that waited and goes on runs, whatever was stored of it before.
      ...(live.outcome === "running" ? { outcome: live.outcome } : {}),
      ...(isOpen ? { outcome: live.outcome, result: live.result } : {}),
    };
  });
  const only = [...tasks.values()].filter(({ taskId }) => !known.has(taskId));
  return [...only, ...both].sort((a, b) => (b.startedAt ?? 0) - (a.startedAt ?? 0));
};

export interface Activity {
  count: number;
  running: number;
  /** Of those whose time is known; undefined if it is of none. */
  averageMs: number | undefined;
  /** How the newest ended. */
  last: Outcome | undefined;
  error: string | undefined;
}

/** By drawn id, closed subgraphs and open ones among them: these run as long as something in them does. */
export const activityByNode = (executions: readonly Execution[]): ReadonlyMap<string, Activity> => {
  const sums = new Map<string, Activity & { times: number; sum: number }>();
  for (const { node, outcome, durationMs, error } of executions) {
    const known = sums.get(node) ?? {
      count: 0,
      running: 0,
      averageMs: undefined,
      last: outcome,
      error,
      times: 0,
      sum: 0,
    };
    known.count += 1;
    if (outcome === "running") known.running += 1;
    if (durationMs !== undefined) {
      known.times += 1;
      known.sum += durationMs;
      known.averageMs = known.sum / known.times;
    }
    sums.set(node, known);
  }
  for (const { node, outcome } of executions) {
    if (outcome !== "running") continue;
    for (const group of groupsAround(node)) {
      const around = sums.get(group);
      if (around !== undefined && around.running === 0) around.running = 1;
    }
  }
  return sums;
};
