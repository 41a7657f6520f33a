import type { AttemptSaver, CheckpointStorage } from "../../state/checkpoints/types.ts";
import type { ClaimedRunRow } from "../../platform/database/tables.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import { noteRefused, withoutRefused } from "../../graphs/pending-writes.ts";
import { withBoundCallbacks, type RunnableGraph } from "../../graphs/runnable-graph.ts";
import { LeaseLostError } from "../../platform/domain/errors.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { toWireJson } from "../../state/values/wire-json.ts";
import { createTimeSlicer, type TimeSlicer } from "../../platform/lib/time-slicer.ts";
import type { GraphEnd } from "../events/protocol/subgraphs.ts";
import { createEventPublisher } from "../events/event-publisher.ts";
import type { RunKwargs } from "../queue/kwargs.ts";
import type {
  GraphResult,
  AttemptEvents,
  ExecutionOptions,
  GraphExecution,
  GraphExecutor,
  StopReason,
} from "./executor.ts";
import { boundEvents, createEventIntake, createPauses, executeGraph } from "./event-intake.ts";
import { errorForClients } from "./error-for-clients.ts";
import { checkpointMetadata, runOptions, toCommand } from "./run-options.ts";
import { answeredBy, assertAnswersWhatWaits, RefusedResumeError } from "./strict-resume.ts";

export interface InlineExecutorParts {
  graphs: Graphs;
  checkpoints: CheckpointStorage;
  /** What waits for an answer on a thread: `{task_id: [{id, value}]}`. */
  interruptsOf(threadId: string): Promise<JsonObject>;
  /** No run goes on for more steps, whatever it was given. */
  recursionLimitMax: number;
  /** Of one event; a run that tells a larger one to somebody fails. */
  eventCharactersAtMost: number;
}

/**
 * LangGraph waits between two steps for promises only. If no node waits for anything else, no timer fires and no socket
 * is read meanwhile, for as long as the graph goes on: with a recursion limit of a billion, for days. So graphs are
 * paced: this is about two steps of a simple one. A request needs some fifteen turns of the event loop, so a graph that
 * never waits makes it some 8 ms slower, and so do ten of them.
 */
const GRAPH_SLICE_MS = 0.5;

/** Milliseconds that a graph has to end after its signal fired; then it goes on without being heard. */
const STOP_GRACE_MS = 500;

/** How the graphs within that of a stopped attempt end, if the run ends with it. */
const endOfStopped = (reason: StopReason | undefined): GraphEnd | undefined =>
  reason?.kind === "cancel" ? "interrupted" : reason?.kind === "timeout" ? "failed" : undefined;

/**
 * Executes graphs in this process: they share its event loop and its memory with everything else in it. No process in
 * between means the smallest footprint, and is what a debugger wants.
 */
export const createInlineExecutor = (parts: InlineExecutorParts): GraphExecutor<GraphResult> => {
  const slicer = createTimeSlicer({ sliceMs: GRAPH_SLICE_MS });
  return {
    suspectsAtOnce: 0,
    execute: (run, sink, options) => startAttempt(parts, slicer, run, sink, options),
  };
};

/**
 * Executes the graph of a claimed run once. It is stopped from outside through `stop`, and what it finds is returned,
 * not stored.
 */
const startAttempt = (
  { graphs, checkpoints, interruptsOf, recursionLimitMax, eventCharactersAtMost }: InlineExecutorParts,
  slicer: TimeSlicer,
  run: ClaimedRunRow,
  sink: AttemptEvents,
  { onGraphEnded, publishesProtocol }: ExecutionOptions,
): GraphExecution<GraphResult> => {
  const abort = new AbortController();
  let stopReason: StopReason | undefined;
  let onStop: (() => void) | undefined;
  const stopped = new Promise<void>((resolve) => {
    onStop = resolve;
  });
  const kwargs = run.kwargs as unknown as RunKwargs;
  const bounded = boundEvents(sink, eventCharactersAtMost);
  const publisher = createEventPublisher(
    { ...kwargs, resumable: run.resumable },
    publishesProtocol,
    (...event) => bounded.emit(...event),
  );
  const intake = createEventIntake(publisher);
  let saver: AttemptSaver | undefined;
  let graph: RunnableGraph | undefined;

  const { pause, beforeNextStep, beforeWrite } = createPauses(sink, slicer);

  /** What was reached before a failure or a stop stays; whether it could be stored shows when the run is ended. */
  const keepProgress = async (): Promise<void> => {
    await saver?.flush().catch(() => undefined);
  };

  let isGraphEnded = false;
  const graphEnded = (): void => {
    if (!isGraphEnded) onGraphEnded();
    isGraphEnded = true;
  };

  const execute = async (): Promise<void> => {
    // A later attempt goes on where the earlier one's last checkpoint stands; without one it starts over.
    const resumes =
      run.attempt > 1 && (await checkpoints.latestOfRun(run.thread_id, run.run_id)) !== undefined;
    const options = runOptions(run, kwargs, {
      signal: abort.signal,
      resumes,
      recursionLimitMax,
      publisher: publisher.options,
    });
    const own = checkpoints.saverForAttempt({
      threadId: run.thread_id,
      runId: run.run_id,
      attempt: run.attempt,
      durability: kwargs.durability,
      threadIsEmpty: run.starts_empty === true,
      beforeNextStep,
      beforeWrite,
      metadata: checkpointMetadata(run),
      searchableMetadata: Object.keys(run.metadata),
    });
    // A refused checkpoint is the first news of a lost lease; waiting for the heartbeat would waste work.
    own.failed.addEventListener("abort", () => {
      if (own.failed.reason instanceof LeaseLostError) stop({ kind: "lease-lost" });
    });
    saver = own;
    const bindings = {
      checkpointer: own,
      // No checkpoint is made between its steps.
      ...(kwargs.durability === "exit" ? { beforeStep: beforeNextStep } : {}),
    };
    const resolved = await graphs.resolve(run.graph_id, options, bindings, "threads.create_run");
    graph = resolved;
    // What this very run wrote it has to answer for: a later attempt fails as the first one did.
    if (!resumes) own.filter = (tuple, read) => withoutRefused(resolved, tuple, read);
    if (!resumes) await assertAnswersWhatWaits(resolved, options, kwargs);
    const input = resumes
      ? null
      : kwargs.command === undefined
        ? (kwargs.input ?? null)
        : await toCommand(kwargs.command, () => interruptsOf(run.thread_id), graphs.classesOf(run.graph_id));
    publisher.begin(resolved);
    if (!resumes && publisher.publishesAnswers && kwargs.command?.resume != null)
      publisher.answered(answeredBy(kwargs.command.resume, await interruptsOf(run.thread_id)));
    await executeGraph(resolved, input, withBoundCallbacks(resolved, options), {
      publisher,
      intake,
      sink: bounded,
      pause,
      flush: () => own.flush(),
    });
    intake.end(intake.observed.interrupted ? "interrupted" : "completed");
    await publisher.settled();
    graphEnded();
    await own.flush();
  };

  const stop = (reason: StopReason): void => {
    if (stopReason !== undefined) return;
    stopReason = reason;
    abort.abort(new Error(`The run was stopped (${reason.kind}).`));
    const timer = setTimeout(() => onStop?.(), STOP_GRACE_MS);
    void result.finally(() => clearTimeout(timer));
  };

  const result = (async (): Promise<GraphResult> => {
    // Nothing of the graph's own code runs before the caller has the attempt in hand.
    await Promise.resolve();
    try {
      const execution = execute();
      execution.catch(() => undefined); // when it was left behind, nobody else listens
      await Promise.race([execution, stopped]);
      if (stopReason !== undefined) {
        intake.end(endOfStopped(stopReason));
        graphEnded();
        await keepProgress();
        return { kind: "stopped", reason: stopReason };
      }
      const { values, interrupted, interrupts } = intake.observed;
      if (interrupted) publisher.asked(interrupts);
      return {
        kind: "completed",
        values: () => (values === undefined ? undefined : toWireJson(values)),
        interrupts: interrupted ? () => toWireJson(interrupts) : undefined,
        lastUnsafe: saver?.lastUnsafe,
      };
    } catch (error) {
      const isLost = error instanceof LeaseLostError;
      if (stopReason === undefined && !isLost) intake.end("failed", () => errorForClients(error));
      else intake.end(endOfStopped(stopReason));
      graphEnded();
      if (error instanceof RefusedResumeError) return { kind: "refused", refusal: error.refusal };
      if (graph !== undefined && saver?.endsWithWrites && stopReason === undefined) {
        await noteRefused(graph, saver, run.thread_id).catch(() => undefined);
      }
      await keepProgress();
      if (stopReason !== undefined) return { kind: "stopped", reason: stopReason };
      if (isLost) return { kind: "stopped", reason: { kind: "lease-lost" } };
      return { kind: "failed", error };
    }
  })();

  return { result, stop, wantValues: () => undefined };
};
