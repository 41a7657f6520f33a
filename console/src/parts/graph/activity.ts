import type { Interrupt, ThreadTask } from "@langchain/langgraph-sdk";
import type { CheckpointRef, StoredCheckpoint } from "../checkpoints.ts";
import { groupsAround } from "./drawing.ts";

export type Outcome = "running" | "done" | "failed" | "waiting" | "stopped";

export interface Execution {
  taskId: string;
  /** E.g. `investigate:search`. */
  node: string;
  namespace: string;
  outcome: Outcome;
  /** Undefined while only the stream knows the task. */
  checkpoint: CheckpointRef | undefined;
  step: number | undefined;
  /** Milliseconds since 1970. */
  startedAt: number | undefined;
  /** Undefined if the task runs or waited for an answer. */
  durationMs: number | undefined;
  /** False if tasks shared the step: `durationMs` is then an upper bound. */
  isExact: boolean;
  /** If the stream has sent it. */
  input?: unknown;
  result: unknown;
  error: string | undefined;
  interrupts: readonly Interrupt[];
  /** Such a task runs while its graph runs. */
  isOfHead: boolean;
}

/** Without task ids, and without the counters of repeated calls by one node. */
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

/** @param states newest first */
export const executionsIn = (states: readonly StoredCheckpoint[], namespace: string): Execution[] => {
  const path = namespace === "" ? [] : namespace.split("|");
  /** When the next step was stored, by checkpoint id. */
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

export const namespaceBelow = ({ namespace, node, taskId }: Execution): string => {
  const own = `${node.slice(node.lastIndexOf(":") + 1)}:${taskId}`;
  return namespace === "" ? own : `${namespace}|${own}`;
};

/** The stream omits tasks that began before the page opened, so stored open tasks count as running. */
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
 * Newest first. Times of the stream are exact; errors and states are only stored.
 * @param stored tasks of a graph before tasks of its subgraphs
 */
export const mergeExecutions = (
  stored: readonly Execution[],
  { tasks, isRunning }: { tasks: ReadonlyMap<string, Execution>; isRunning: boolean },
): Execution[] => {
  const known = new Set(stored.map(({ taskId }) => taskId));
  // A stream repeats the start of a task of an ended run, and its end a moment later.
  const isOver = ({ outcome }: Execution): boolean => !isRunning && outcome === "running";
  const both = (isRunning ? markRunning(stored) : stored).map((execution): Execution => {
    const live = tasks.get(execution.taskId);
    if (live === undefined || isOver(live)) return execution;
    const isOpen = execution.outcome === "stopped" || execution.outcome === "running";
    return {
      ...execution,
      input: live.input,
      startedAt: live.startedAt ?? execution.startedAt,
      ...(live.durationMs === undefined ? {} : { durationMs: live.durationMs, isExact: true }),
      // A task that waited for an answer may run again.
      ...(live.outcome === "running" ? { outcome: live.outcome } : {}),
      ...(isOpen ? { outcome: live.outcome, result: live.result } : {}),
    };
  });
  const only = [...tasks.values()].filter((task) => !known.has(task.taskId) && !isOver(task));
  return [...only, ...both].sort((a, b) => (b.startedAt ?? 0) - (a.startedAt ?? 0));
};

export interface Activity {
  count: number;
  running: number;
  averageMs: number | undefined;
  last: Outcome | undefined;
  error: string | undefined;
}

/** A subgraph runs while one of its nodes runs. */
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
