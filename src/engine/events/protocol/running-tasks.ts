import { isObject } from "../../../platform/lib/json.ts";

/** Counts the tasks of each graph's present step. Keys name graphs. */
export const createRunningTasks = () => {
  const counts = new Map<string, number>();
  const count = (graph: string, by: 1 | -1): number => {
    const running = (counts.get(graph) ?? 0) + by;
    counts.set(graph, running);
    return running;
  };
  return {
    begun: (graph: string): number => count(graph, 1),
    /** Whether it was the last one of its step. */
    ended: (graph: string): boolean => count(graph, -1) <= 0,
    /** LangGraph sends no result of a task that an earlier run or attempt has ended, only an update with `cached`. */
    noteUpdate(graph: string, update: unknown): void {
      const metadata = isObject(update) ? update["__metadata__"] : undefined;
      if (isObject(metadata) && metadata["cached"] === true) count(graph, -1);
    },
    forget: (graph: string): boolean => counts.delete(graph),
  };
};
