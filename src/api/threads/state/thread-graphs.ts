import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { Visibility } from "../../../access/visibility.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import type { GraphConfiguration, RunnableGraph } from "../../../graphs/runnable-graph.ts";
import type { ThreadConfigurations } from "./configuration.ts";
import { planOf, type GraphPlan } from "./graph-plan.ts";

/** `graphId` is null before the first run. */
export interface ThreadOfGraph {
  /** The visibility that found the thread. */
  visibility: Visibility<"threads">;
  threadId: string;
  graphId: string | null;
}

export type KnownConfigurations = ReadonlyMap<string, GraphConfiguration>;

export const createThreadGraphs = (graphs: Graphs, configurations: ThreadConfigurations) => {
  /** A factory makes new graphs each time, which must be garbage-collected with their plans. */
  const plans = new WeakMap<RunnableGraph, { plan: GraphPlan | undefined }>();

  /** Only factories need a query. All threads were found with one visibility. */
  const configurationsOf = async (threads: readonly ThreadOfGraph[]): Promise<KnownConfigurations> => {
    const ofFactories = threads.filter(
      ({ graphId }) => graphId !== null && graphs.has(graphId) && graphs.isFactory(graphId),
    );
    const [first] = ofFactories;
    if (first === undefined) return new Map();
    return await configurations.of(
      first.visibility,
      ofFactories.map(({ threadId }) => threadId),
    );
  };

  /**
   * Undefined for a thread that never ran, an unknown graph and a failing factory: one thread must not fail a search.
   */
  const graphOf = async (
    thread: ThreadOfGraph,
    known?: KnownConfigurations,
  ): Promise<RunnableGraph | undefined> => {
    const { threadId, graphId } = thread;
    if (graphId === null || !graphs.has(graphId)) return undefined;
    const configuration = (known ?? (await configurationsOf([thread]))).get(threadId);
    return await graphs.resolve(graphId, configuration).catch(() => undefined);
  };

  const planFor = (graph: RunnableGraph): GraphPlan | undefined => {
    let known = plans.get(graph);
    if (known === undefined) plans.set(graph, (known = { plan: planOf(graph) }));
    return known.plan;
  };

  return {
    configurationsOf,
    graphOf,
    planFor,

    async resolverOf(
      thread: ThreadOfGraph,
    ): Promise<(saver?: BaseCheckpointSaver) => Promise<RunnableGraph>> {
      const configuration = (await configurationsOf([thread])).get(thread.threadId);
      return (checkpointer) =>
        graphs.resolve(
          thread.graphId ?? "",
          configuration,
          checkpointer === undefined ? undefined : { checkpointer },
        );
    },

    /** Whether the keys of all values are channels of the same name. */
    async areKeysChannels(threads: readonly ThreadOfGraph[], known: KnownConfigurations): Promise<boolean> {
      for (const thread of threads) {
        const graph = await graphOf(thread, known);
        const plan = graph && planFor(graph);
        if (graph !== undefined && (plan === undefined || plan.onlyChannel !== undefined)) return false;
      }
      return true;
    },
  };
};

export type ThreadGraphs = ReturnType<typeof createThreadGraphs>;
