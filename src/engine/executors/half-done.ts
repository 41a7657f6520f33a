import type { GraphRunOptions, RunnableGraph } from "../../graphs/runnable-graph.ts";
import type { EventPublisher } from "../events/event-publisher.ts";

/** Publishes the state of a step that a run continues, if the request has the mode `half-done` and a task has ended. */
export const publishHalfDone = async (
  publisher: EventPublisher,
  graph: RunnableGraph,
  { configurable = {} }: GraphRunOptions,
): Promise<void> => {
  if (!publisher.publishesHalfDone) return;
  // What can't be read here fails the run itself, or only a client's display.
  const state = await graph.getState({ configurable }).catch(() => undefined);
  const ended = state?.tasks.flatMap(({ id, result }) => (result === undefined ? [] : [id])) ?? [];
  if (ended.length > 0) publisher.halfDone({ values: state?.values, ended });
};
