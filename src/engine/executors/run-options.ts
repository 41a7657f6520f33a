import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { Command, Send } from "@langchain/langgraph";
import type { ExecutedRunRow, RunRow } from "../../platform/database/tables.ts";
import {
  authConfigurable,
  metadataForCallbacks,
  tagsForCallbacks,
  toGraphConfiguration,
  withoutServerOwned,
} from "../../graphs/configuration.ts";
import { TRACE_SCOPE, type TraceScope } from "../../graphs/trace/scope.ts";
import type { GraphRunOptions } from "../../graphs/runnable-graph.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { EventPublisher } from "../events/event-publisher.ts";
import type { ValueClasses } from "../../state/values/classes.ts";
import type { Goto, RunKwargs } from "../queue/kwargs.ts";

const toGoto = (goto: Goto, classes: ValueClasses): string | Send =>
  typeof goto === "string" ? goto : new classes.Send(goto.node, goto.input);

/**
 * LangGraph takes `false`, `0` and `""` for no answer (1.4.18: EmptyInputError) unless they are given by id.
 */
const byInterrupt = (answer: unknown, interrupts: object): unknown => {
  const waiting = Object.values(interrupts).flat() as { id?: string }[];
  const ids = waiting.flatMap(({ id }) => (id === undefined ? [] : [id]));
  return ids.length === 0 ? answer : Object.fromEntries(ids.map((id) => [id, answer]));
};

export const toCommand = async (
  { update, resume, goto }: NonNullable<RunKwargs["command"]>,
  /** Where the run begins, by task. */
  interrupts: () => Promise<object>,
  classes: ValueClasses,
): Promise<Command> =>
  new classes.Command({
    ...(update == null ? {} : { update: update as Record<string, unknown> }),
    ...(resume == null ? {} : { resume: resume ? resume : byInterrupt(resume, await interrupts()) }),
    ...(goto == null
      ? {}
      : { goto: Array.isArray(goto) ? goto.map((place) => toGoto(place, classes)) : toGoto(goto, classes) }),
  });

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

export const checkpointMetadata = (run: RunRow): JsonObject => ({
  ...(withoutServerOwned((run.config.configurable as JsonObject | undefined) ?? {}) as JsonObject),
  ...run.metadata,
  graph_id: run.graph_id,
  assistant_id: run.assistant_id,
});

interface AttemptCircumstances {
  signal: AbortSignal;
  resumes: boolean;
  /** A configuration stored earlier may exceed this limit. */
  recursionLimitMax: number;
  publisher: EventPublisher["options"];
  scope: TraceScope;
  callbacks: readonly BaseCallbackHandler[];
}

export const runOptions = (
  run: ExecutedRunRow,
  kwargs: RunKwargs,
  { signal, resumes, recursionLimitMax, publisher, scope, callbacks }: AttemptCircumstances,
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
      checkpoint_ns: checkpoint?.checkpoint_ns ?? "",
      [TRACE_SCOPE]: scope,
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
    ...(callbacks.length === 0 ? {} : { callbacks: [...(publisher.callbacks ?? []), ...callbacks] }),
    // With `sync`, LangGraph awaits the checkpointer after each step, also in subgraphs. For a run with
    // `async`, the checkpointer waits for the commit only where the graph must pause.
    durability: kwargs.durability === "exit" ? "exit" : "sync",
    ...(kwargs.interrupt_before === undefined ? {} : { interruptBefore: kwargs.interrupt_before }),
    ...(kwargs.interrupt_after === undefined ? {} : { interruptAfter: kwargs.interrupt_after }),
  };
};
