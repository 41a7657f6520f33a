import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { AttemptSaver, CheckpointStorage } from "../../state/checkpoints/types.ts";
import type { ClaimedRunRow } from "../../platform/database/tables.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import { noteRefused, withoutRefused } from "../../graphs/pending-writes.ts";
import { outputKeysOf, type GraphRunOptions, type RunnableGraph } from "../../graphs/runnable-graph.ts";
import { LeaseLostError, RunOvertakenError, ValueTooLargeError } from "../../platform/domain/errors.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { toWireJson } from "../../state/values/wire-json.ts";
import { createTimeSlicer, type TimeSlicer } from "../../platform/lib/time-slicer.ts";
import type { OpenSubgraph, GraphEnd } from "../events/protocol/subgraphs.ts";
import { EventPublisher } from "../events/event-publisher.ts";
import type { RunSelector } from "../queue/attempts.ts";
import type { RunKwargs } from "../queue/kwargs.ts";
import type {
  GraphResult,
  AttemptEvents,
  ExecutionOptions,
  GraphExecution,
  GraphExecutor,
  StopReason,
} from "./executor.ts";
import { createEventIntake, type EventIntake } from "./event-intake.ts";
import { errorForClients } from "../../platform/domain/error-for-clients.ts";
import { startRecording } from "./recording.ts";
import { checkpointMetadata, runOptions, toCommand } from "./run-options.ts";
import { answeredBy, assertAnswersWhatWaits, interruptsAt, RefusedResumeError } from "./strict-resume.ts";

export interface InlineExecutorParts {
  graphs: Graphs;
  checkpoints: CheckpointStorage;
  /** The pending interrupts of a thread: `{task_id: [{id, value}]}`. */
  interruptsOf(threadId: string): Promise<JsonObject>;
  /** Of earlier attempts. */
  openSubgraphsOf(run: RunSelector): Promise<OpenSubgraph[]>;
  recursionLimitMax: number;
  /** A run with a larger event that has a reader fails. */
  eventCharactersAtMost: number;
}

/**
 * LangGraph awaits only promises between two steps, so a graph without I/O would starve timers and sockets.
 * Graphs yield after this time (about two simple steps). A request needs about 15 turns of the loop, so they
 * delay it by about 8 ms.
 */
const GRAPH_SLICE_MS = 0.5;

const STOP_GRACE_MS = 500;
/** Then a stopped run drops what its log or its readers could not take. A graph process is killed after 1.5 s. */
const BACKLOG_AFTER_STOP_MS = 1_000;

const endOfStopped = (reason: StopReason | undefined): GraphEnd | undefined =>
  reason?.kind === "cancel" ? "interrupted" : reason?.kind === "timeout" ? "failed" : undefined;

/** Graphs share this process's event loop and memory: the smallest footprint, and simple to debug. */
export const createInlineExecutor = (
  parts: InlineExecutorParts,
): Pick<GraphExecutor<GraphResult>, "execute"> => {
  const slicer = createTimeSlicer(GRAPH_SLICE_MS);
  return { execute: (run, sink, options) => startAttempt(parts, slicer, run, sink, options) };
};

/** A callback of LangChain that each node waits for. */
class BeforeNode extends BaseCallbackHandler {
  readonly name = "threadloom_before_node";
  override readonly awaitHandlers = true;
  override readonly ignoreLLM = true;
  override readonly ignoreAgent = true;
  override readonly ignoreRetriever = true;
  override readonly ignoreCustomEvent = true;

  constructor(private readonly wait: () => Promise<void> | undefined) {
    super();
  }

  override handleChainStart(): Promise<void> | undefined {
    return this.wait();
  }
}

/** Whether a later attempt continues. Without a checkpoint of its run, the attempt starts over. */
const continues = async (
  checkpoints: CheckpointStorage,
  { thread_id, run_id, attempt }: ClaimedRunRow,
  { command }: RunKwargs,
): Promise<boolean> => {
  const place = await checkpoints.placeOfRun(thread_id, run_id);
  // LangGraph would continue from the newest checkpoint, and end without the run's own steps.
  if (place === "overtaken") throw new RunOvertakenError(run_id);
  if (place === "none" && command?.resume != null)
    await checkpoints.takeBackAnswers({ threadId: thread_id, runId: run_id, attempt });
  return place === "newest";
};

/** Publishes the state of a step that a run continues, if the request has the mode `half-done` and a task has ended. */
const publishHalfDone = async (
  publisher: EventPublisher,
  graph: RunnableGraph,
  { configurable = {} }: GraphRunOptions,
): Promise<void> => {
  if (!publisher.publishesHalfDone) return;
  // An unreadable state fails the run later. Until then only a client's display lacks it.
  const state = await graph.getState({ configurable }).catch(() => undefined);
  const ended = state?.tasks.flatMap(({ id, result }) => (result === undefined ? [] : [id])) ?? [];
  if (ended.length > 0) publisher.halfDone({ values: state?.values, ended });
};

/** Aborts the graph. Until `stopped` it may end by itself, and until `givenUp` its events may reach the log. */
const createStopping = (abort: AbortController) => {
  let reason: StopReason | undefined;
  let onStopped = (): void => undefined;
  let onGivenUp = (): void => undefined;
  return {
    stopped: new Promise<void>((resolve) => (onStopped = resolve)),
    givenUp: new Promise<void>((resolve) => (onGivenUp = resolve)),
    get reason() {
      return reason;
    },
    stop(why: StopReason, result: Promise<unknown>): void {
      if (why.kind === "lease-lost") onGivenUp();
      if (reason !== undefined) return;
      reason = why;
      abort.abort(new Error(`The run was stopped (${why.kind}).`));
      const timers = [
        setTimeout(() => onStopped(), STOP_GRACE_MS),
        setTimeout(() => onGivenUp(), BACKLOG_AFTER_STOP_MS),
      ];
      void result.finally(() => timers.forEach(clearTimeout));
    },
  };
};

const openSaver = (
  checkpoints: CheckpointStorage,
  run: ClaimedRunRow,
  { durability }: RunKwargs,
  { beforeNextStep, beforeWrite }: EventIntake,
  { endsSubgraphs }: EventPublisher,
): AttemptSaver =>
  checkpoints.saverForAttempt({
    threadId: run.thread_id,
    runId: run.run_id,
    attempt: run.attempt,
    durability,
    threadIsEmpty: run.starts_empty === true,
    beforeNextStep,
    beforeWrite,
    observesSteps: endsSubgraphs,
    metadata: checkpointMetadata(run),
    searchableMetadata: Object.keys(run.metadata),
  });

const startAttempt = (
  { graphs, checkpoints, interruptsOf, openSubgraphsOf, ...limits }: InlineExecutorParts,
  slicer: TimeSlicer,
  run: ClaimedRunRow,
  sink: AttemptEvents,
  { onGraphEnded, publishesProtocol, records }: ExecutionOptions,
): GraphExecution<GraphResult> => {
  const abort = new AbortController();
  const stopping = createStopping(abort);
  const kwargs = run.kwargs as unknown as RunKwargs;
  /** Server and client hold each event in memory. */
  const bounded = (event: string, text: string): string => {
    if (text.length <= limits.eventCharactersAtMost) return text;
    throw new ValueTooLargeError(`An event '${event}'`, limits.eventCharactersAtMost);
  };
  const publisher = new EventPublisher(
    { ...kwargs, resumable: run.resumable },
    publishesProtocol,
    (event, data, checkpoint) => sink.emit(event, () => bounded(event, data()), checkpoint),
    (graph, isStepOver, end) => intake.publishWhen(readable(graph, isStepOver), end),
  );
  /** With durability `exit` nothing is stored before the end. */
  const readable = (graph: readonly string[], isStepOver: boolean): Promise<void> | undefined =>
    kwargs.durability === "exit"
      ? new Promise(() => undefined)
      : saver?.whenReadable(graph.join("|"), isStepOver);
  const recording = startRecording(records);
  let saver: AttemptSaver | undefined;
  let graph: RunnableGraph | undefined;
  const intake = createEventIntake({
    publisher,
    sink,
    slicer,
    flush: async () => await saver?.flush(),
  });

  /** A failed flush shows when the run is ended. */
  const keepProgress = (): Promise<void> | undefined => saver?.flush().catch(() => undefined);

  let isGraphEnded = false;
  const graphEnded = (): void => {
    if (!isGraphEnded) onGraphEnded();
    isGraphEnded = true;
    recording.end();
  };

  const execute = async (): Promise<void> => {
    const resumes = run.attempt > 1 && (await continues(checkpoints, run, kwargs));
    const options = runOptions(run, kwargs, {
      signal: abort.signal,
      resumes,
      recursionLimitMax: limits.recursionLimitMax,
      publisher: publisher.options,
      scope: recording.scope,
      callbacks: [
        kwargs.langsmith_tracer && graphs.tracerOf(run.graph_id, kwargs.langsmith_tracer),
        // There are no checkpoints between steps.
        kwargs.durability === "exit" ? new BeforeNode(intake.beforeNextStep) : undefined,
      ].filter((callback) => callback !== undefined),
    });
    const own = openSaver(checkpoints, run, kwargs, intake, publisher);
    // A refused checkpoint reveals a lost lease before the next heartbeat does.
    own.failed.addEventListener("abort", () => {
      if (own.failed.reason instanceof LeaseLostError) stop({ kind: "lease-lost" });
    });
    saver = own;
    const resolved = await graphs.resolve(run.graph_id, options, { checkpointer: own }, "threads.create_run");
    graph = resolved;
    // A later attempt keeps the refused writes of its own run, so it fails as the first one did.
    if (!resumes) own.filter = (tuple, read) => withoutRefused(resolved, tuple, read);
    const waiting = () => interruptsAt(resolved, options, own);
    if (!resumes) await assertAnswersWhatWaits(kwargs, waiting);
    const input = resumes
      ? null
      : kwargs.command === undefined
        ? (kwargs.input ?? null)
        : await toCommand(kwargs.command, waiting, graphs.classesOf(run.graph_id));
    publisher.begin(resolved);
    const { protocol } = publisher;
    const answer = kwargs.command?.resume;
    if (resumes && protocol !== undefined)
      protocol.reopen(await openSubgraphsOf({ threadId: run.thread_id, runId: run.run_id }));
    if (resumes || answer != null) await publishHalfDone(publisher, resolved, options);
    if (!resumes && answer != null) protocol?.answered(answeredBy(answer, await interruptsOf(run.thread_id)));
    await intake.execute(resolved, input, options);
    if (publisher.hasOpenSubgraphs()) await own.flush();
    intake.end(intake.observed.interrupted ? "interrupted" : "completed");
    await protocol?.settled();
    graphEnded();
    await own.flush();
  };

  const stop = (reason: StopReason): void => stopping.stop(reason, result);

  /** What the graph streamed comes before its end. The log may be away for long, so a stopped run does not wait for it. */
  const backlog = (): Promise<void> => Promise.race([intake.settled(), stopping.givenUp]);

  const completed = (): GraphResult => {
    const { values, interrupted, interrupts } = intake.observed;
    if (interrupted) publisher.protocol?.asked(interrupts);
    return {
      kind: "completed",
      values: () => (values === undefined ? undefined : toWireJson(values)),
      interrupts: interrupted ? () => toWireJson(interrupts) : undefined,
      outputKeys: graph && outputKeysOf(graph),
      lastUnsafe: saver?.lastUnsafe,
    };
  };

  /** `thrown`: undefined if the graph goes on although the run was stopped. */
  const broken = async (thrown: { error: unknown } | undefined): Promise<GraphResult> => {
    // A refused event fails the run, whatever the graph threw.
    const error = await backlog().then(
      () => thrown?.error,
      (refused: unknown) => refused,
    );
    const { reason } = stopping;
    // The graph itself has not failed if its events were refused.
    abort.abort(error);
    if (publisher.hasOpenSubgraphs()) await keepProgress();
    const isLost = error instanceof LeaseLostError;
    if (reason === undefined && !isLost) intake.end("failed", () => errorForClients(error));
    else intake.end(endOfStopped(reason));
    graphEnded();
    if (error instanceof RefusedResumeError) return { kind: "refused", refusal: error.refusal };
    if (graph !== undefined && saver?.endsWithWrites && reason === undefined) {
      await noteRefused(graph, saver, run.thread_id).catch(() => undefined);
    }
    await keepProgress();
    if (reason !== undefined) return { kind: "stopped", reason };
    return isLost ? { kind: "stopped", reason: { kind: "lease-lost" } } : { kind: "failed", error };
  };

  const result = (async (): Promise<GraphResult> => {
    // Graph code runs only after the caller has the execution.
    await Promise.resolve();
    try {
      const execution = recording.run(execute);
      execution.catch(() => undefined); // an abandoned execution has no other handler
      await Promise.race([execution, stopping.stopped]);
      if (stopping.reason === undefined) return completed();
    } catch (error) {
      return await broken({ error });
    }
    return await broken(undefined);
  })();

  return { result, stop, wantValues: () => undefined };
};
