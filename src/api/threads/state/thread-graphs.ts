import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { Visibility } from "../../../access/visibility.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import type { GraphConfiguration, RunnableGraph } from "../../../graphs/runnable-graph.ts";
import type { ThreadConfigurations } from "./configuration.ts";
import { planOf, type GraphPlan } from "./graph-plan.ts";

/** A thread and the graph that its runs execute; null before its first run. */
export interface ThreadOfGraph {
  /** With which the thread was found. */
  visibility: Visibility<"threads">;
  threadId: string;
  graphId: string | null;
}

export interface ThreadGraphsOptions {
  graphs: Graphs;
  configurations: ThreadConfigurations;
}

export type KnownConfigurations = ReadonlyMap<string, GraphConfiguration>;

/** The graphs of threads, as their runs would build them, and how the states of each read. */
export const createThreadGraphs = ({ graphs, configurations }: ThreadGraphsOptions) => {
  /** A graph's plan doesn't change; a factory's graphs are new each time and are collected with their plan. */
  const plans = new WeakMap<RunnableGraph, { plan: GraphPlan | undefined }>();

  /**
   * What the factories among these threads' graphs are called with: other graphs need no look at the database. The
   * threads were found with the same visibility.
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
   * Undefined for a thread that never ran, for a graph that is no longer deployed, and for one whose factory makes
   * none from the thread's configuration: one such thread must not fail a search of all. `known`: the configurations,
   * where they were read for several threads at once.
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

    /** The graph of a thread, with a checkpointer other than its own; rejects if it can't be built. */
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

    /** Whether the values of these threads can be told from the channels that are named like their keys. */
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
