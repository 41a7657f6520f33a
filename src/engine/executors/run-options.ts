import type { Command, Send } from "@langchain/langgraph";
import type { ExecutedRunRow, RunRow } from "../../platform/database/tables.ts";
import {
  authConfigurable,
  metadataForCallbacks,
  tagsForCallbacks,
  toGraphConfiguration,
  withoutServerOwned,
} from "../../graphs/configuration.ts";
import type { GraphRunOptions } from "../../graphs/runnable-graph.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { EventPublisher } from "../events/event-publisher.ts";
import type { ValueClasses } from "../../state/values/classes.ts";
import type { Goto, RunKwargs } from "../queue/kwargs.ts";

/** From a stored run to what LangGraph is called with. */

const toGoto = (goto: Goto, classes: ValueClasses): string | Send =>
  typeof goto === "string" ? goto : new classes.Send(goto.node, goto.input);

/**
 * An answer for every interrupt that waits. LangGraph takes `false`, `0` and `""` for no answer at all (1.4.18:
 * EmptyInputError), but not when they are given by the interrupt's id.
 */
const byInterrupt = (answer: unknown, interrupts: JsonObject): unknown => {
  const waiting = Object.values(interrupts).flat() as { id?: string }[];
  const ids = waiting.flatMap(({ id }) => (id === undefined ? [] : [id]));
  return ids.length === 0 ? answer : Object.fromEntries(ids.map((id) => [id, answer]));
};

export const toCommand = async (
  { update, resume, goto }: NonNullable<RunKwargs["command"]>,
  interrupts: () => Promise<JsonObject>,
  classes: ValueClasses,
): Promise<Command> =>
  new classes.Command({
    ...(update == null ? {} : { update: update as Record<string, unknown> }),
    ...(resume == null ? {} : { resume: resume ? resume : byInterrupt(resume, await interrupts()) }),
    ...(goto == null
      ? {}
      : { goto: Array.isArray(goto) ? goto.map((place) => toGoto(place, classes)) : toGoto(goto, classes) }),
  });

/** What a graph is given to configure itself by: the run's own configuration, and the server's ids. */
export const graphConfiguration = (run: ExecutedRunRow) => {
  const ids = {
    thread_id: run.thread_id,
    run_id: run.run_id,
    graph_id: run.graph_id,
    assistant_id: run.assistant_id,
  };
  const configurable = (run.config.configurable as JsonObject | undefined) ?? {};
  const { headers } = run.kwargs as unknown as RunKwargs;
  const given = toGraphConfiguration({ configurable, headers, context: run.context, ids });
  if (run.auth_user == null) return { ids, ...given };
  return { ids, ...given, configurable: { ...given.configurable, ...authConfigurable(run.auth_user) } };
};

/**
 * By what the checkpoints of a run are found in a history: its metadata (the assistant's, the thread's and the
 * request's), and what it was configured by.
 */
export const checkpointMetadata = (run: RunRow): JsonObject => ({
  ...(withoutServerOwned((run.config.configurable as JsonObject | undefined) ?? {}) as JsonObject),
  ...run.metadata,
  graph_id: run.graph_id,
  assistant_id: run.assistant_id,
});

export interface AttemptCircumstances {
  signal: AbortSignal;
  /** From the checkpoints of an earlier attempt. */
  resumes: boolean;
  /** Stored before this limit was set, a configuration may name a higher one. */
  recursionLimitMax: number;
  /** What the attempt is to stream. */
  publisher: EventPublisher["options"];
}

/** How LangGraph is to run the graph for this attempt. */
export const runOptions = (
  run: ExecutedRunRow,
  kwargs: RunKwargs,
  { signal, resumes, recursionLimitMax, publisher }: AttemptCircumstances,
): GraphRunOptions => {
  const { tags, recursion_limit, max_concurrency } = run.config as {
    tags?: string[];
    recursion_limit?: number;
    max_concurrency?: number;
  };
  const { ids, context, configurable } = graphConfiguration(run);
  const checkpoint = resumes ? undefined : kwargs.checkpoint;
  return {
    context,
    configurable: {
      ...configurable,
      run_attempt: run.attempt,
      checkpoint_ns: "",
      ...(checkpoint?.checkpoint_id === undefined ? {} : { checkpoint_id: checkpoint.checkpoint_id }),
      ...(checkpoint?.checkpoint_map == null ? {} : { checkpoint_map: checkpoint.checkpoint_map }),
    },
    metadata: { ...metadataForCallbacks(run.metadata), ...ids, run_attempt: run.attempt },
    runId: run.run_id,
    ...(tags === undefined ? {} : { tags: tagsForCallbacks(tags) }),
    ...(recursion_limit === undefined
      ? {}
      : { recursionLimit: Math.min(recursion_limit, recursionLimitMax) }),
    ...(max_concurrency === undefined ? {} : { maxConcurrency: max_concurrency }),
    signal,
    ...publisher,
    // LangGraph then waits after each step for what the checkpointer waits for, in subgraphs, too. Ours waits with
    // durability `sync` until all is committed; with `async` only where the graph must not go on at once.
    durability: kwargs.durability === "exit" ? "exit" : "sync",
    ...(kwargs.interrupt_before === undefined ? {} : { interruptBefore: kwargs.interrupt_before }),
    ...(kwargs.interrupt_after === undefined ? {} : { interruptAfter: kwargs.interrupt_after }),
  };
};
