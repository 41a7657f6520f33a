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

export interface ThreadGraphsOptions {
  graphs: Graphs;
  configurations: ThreadConfigurations;
}

export type KnownConfigurations = ReadonlyMap<string, GraphConfiguration>;

/** Resolves the graphs of threads as their runs do, with their plans. */
export const createThreadGraphs = ({ graphs, configurations }: ThreadGraphsOptions) => {
  /** Weak, because a factory makes new graphs each time: they are collected together with their plans. */
  const plans = new WeakMap<RunnableGraph, { plan: GraphPlan | undefined }>();

  /**
   * Configurations for the factories among the graphs; other graphs need no query. One visibility has found all the
   * threads.
   */
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
   * Undefined for a thread that never ran, a graph that is no longer deployed, and a factory that fails: one such
   * thread must not fail a search. `known`: configurations that were read for several threads at once.
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

    /** The thread's graph with another checkpointer; rejects if the graph can't be built. */
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

    /** Whether each key of the values is a channel of the same name in all these threads. */
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
