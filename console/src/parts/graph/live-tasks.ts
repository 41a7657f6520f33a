import type { Event } from "@langchain/protocol";
import type { Interrupt } from "@langchain/langgraph-sdk";
import { drawnIdOf, type Execution } from "./activity.ts";

export interface LiveTasks {
  /** By task id, oldest first. */
  readonly tasks: ReadonlyMap<string, Execution>;
  /** Whether the stream shows a running task; undefined before its first event. The stream may repeat a run that has ended. */
  readonly isRunning: boolean | undefined;
  /** Starts and ends, after which the server knows more. */
  readonly changes: number;
}

export const NO_TASKS: LiveTasks = { tasks: new Map(), isRunning: undefined, changes: 0 };

const TASKS_AT_MOST = 2_000;
/** Inputs may be large, so older tasks lose theirs. */
const INPUTS_AT_MOST = 200;

interface TaskData {
  id?: unknown;
  name?: unknown;
  input?: unknown;
  result?: unknown;
  error?: unknown;
  interrupts?: unknown;
}

const ENDS: ReadonlyMap<string, "stopped" | "failed"> = new Map([
  ["completed", "stopped"],
  ["interrupted", "stopped"],
  ["failed", "failed"],
]);

const interruptsOf = ({ interrupts }: TaskData): Interrupt[] =>
  Array.isArray(interrupts) ? (interrupts as Interrupt[]) : [];

const begun = (data: TaskData, namespace: readonly string[], at: number): Execution => ({
  taskId: String(data.id),
  node: drawnIdOf(namespace, String(data.name)),
  namespace: namespace.join("|"),
  outcome: "running",
  checkpoint: undefined,
  step: undefined,
  startedAt: at,
  durationMs: undefined,
  isExact: true,
  input: data.input,
  result: undefined,
  error: undefined,
  interrupts: [],
  isOfHead: true,
});

const ended = (task: Execution, data: TaskData, at: number): Execution => {
  const interrupts = interruptsOf(data);
  const error = typeof data.error === "string" ? data.error : undefined;
  return {
    ...task,
    outcome: error !== undefined ? "failed" : interrupts.length > 0 ? "waiting" : "done",
    durationMs: task.startedAt === undefined ? undefined : Math.max(0, at - task.startedAt),
    result: data.result,
    error,
    interrupts,
  };
};

const bounded = (tasks: Map<string, Execution>): Map<string, Execution> => {
  const [oldest] = tasks.keys();
  if (tasks.size > TASKS_AT_MOST && oldest !== undefined) tasks.delete(oldest);
  let remaining = tasks.size - INPUTS_AT_MOST;
  for (const [id, task] of tasks) {
    if (remaining <= 0) break;
    remaining -= 1;
    if (task.input !== undefined) tasks.set(id, { ...task, input: undefined });
  }
  return tasks;
};

export const withEvents = (known: LiveTasks, events: readonly Event[]): LiveTasks => {
  const tasks = new Map(known.tasks);
  let { isRunning, changes } = known;
  for (const { method, params } of events) {
    const namespace = params.namespace;
    const at = params.timestamp;
    if (method === "lifecycle" && namespace.length === 0) {
      const { event } = params.data as { event: string };
      const outcome = ENDS.get(event);
      isRunning = event === "running" || event === "started";
      changes += 1;
      if (outcome === undefined) continue;
      for (const [id, task] of tasks) if (task.outcome === "running") tasks.set(id, { ...task, outcome });
    }
    if ((method as string) !== "tasks") continue;
    const data = (params.data ?? {}) as TaskData;
    const id = String(data.id);
    const isEnd = "result" in data || "error" in data;
    const task = isEnd ? tasks.get(id) : undefined;
    // The task starts again, as the newest one.
    if (!isEnd) tasks.delete(id);
    tasks.set(
      id,
      isEnd
        ? ended(task ?? { ...begun(data, namespace, at), startedAt: undefined }, data, at)
        : begun(data, namespace, at),
    );
  }
  return { tasks: bounded(tasks), isRunning, changes };
};
